package examine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The better of two readings counts, and what half an answer takes may be the clock's or the network's.
func TestClock(t *testing.T) {
	for name, c := range map[string]struct {
		off   time.Duration
		takes []time.Duration
		level driver.Level
		says  string
	}{
		"well":          {time.Second, []time.Duration{0, 0}, driver.LevelOK, "to within 1s"},
		"ahead":         {time.Minute, []time.Duration{time.Second, 2 * time.Second}, driver.LevelWarn, "1m0s ahead of"},
		"behind":        {-time.Hour, []time.Duration{2 * time.Second, time.Second}, driver.LevelWarn, "1h0m0s behind"},
		"a slow answer": {8 * time.Second, []time.Duration{20 * time.Second, 10 * time.Second}, driver.LevelOK, "to within 13s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, err := Read(t.Context(), func(context.Context) (time.Time, error) {
				time.Sleep(c.takes[0] / 2)
				at := time.Now().Add(c.off)
				time.Sleep(c.takes[0] / 2)
				c.takes = c.takes[1:]
				return at, nil
			})
			if f := Clock("R4", "", r); err != nil || f.Level != c.level || !strings.Contains(f.Seen, c.says) {
				t.Errorf("%s: %+v, %v; want %v and %q", name, f, err, c.level, c.says)
			}
		})
	}
	gone := errors.New("gone")
	if _, err := Read(t.Context(), func(context.Context) (time.Time, error) { return time.Time{}, gone }); !errors.Is(err, gone) {
		t.Errorf("%v, want %v", err, gone)
	}
}
