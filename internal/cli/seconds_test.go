package cli

import (
	"testing"
	"time"
)

// Who comes from flock(1) writes seconds.
func TestWaitTime(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"10": 10 * time.Second, "0.5": time.Second / 2, ".5": time.Second / 2, "0": 0, "1e3": 1000 * time.Second,
		"500ms": time.Second / 2, "2m": 2 * time.Minute, "1h30m": 90 * time.Minute, "0s": 0,
	} {
		if got, err := waitTime(text); got != want || err != nil {
			t.Errorf("%q is %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "ten", "10 s", "-1", "-1s", "inf", "nan", "1e300", "10,5"} {
		if got, err := waitTime(text); err == nil {
			t.Errorf("%q is %v, want an error", text, got)
		}
	}
}
