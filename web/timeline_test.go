package web_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/interlock-go/interlock/memlock"
	"github.com/interlock-go/interlock/web"
)

var timelineEntry = regexp.MustCompile(`<li data-key="([^"]+)">(.*?)</li>`)

// An entry of a timeline has one key for as long as it is shown, and no other entry has it: the
// script leaves it as it is then, also when newer ones come before it and the oldest go.
func TestTimelineKeysStay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		v := follow(t, handler(t, store, web.Options{}), "/live?store=main&page=line&name=m")
		c := client(t, store, nil)
		keys := map[string]string{} // by what an entry says
		var shown [][]string
		for range 40 {
			l := hold(t, c, "m")
			time.Sleep(time.Second)
			if err := l.Release(); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second)
			shown = timelineEntry.FindAllStringSubmatch(v.newest(t, "page"), -1)
			says := map[string]string{}
			for _, e := range shown {
				key, text := e[1], e[2]
				if other, twice := says[key]; twice {
					t.Errorf("%q and %q are both known by %s", other, text, key)
				}
				if before, known := keys[text]; known && before != key {
					t.Errorf("%q is known by %s, and was by %s", text, key, before)
				}
				says[key], keys[text] = text, key
			}
		}
		if len(shown) != 64 || len(keys) != 80 {
			t.Errorf("the timeline has %d entries of %d, want the last 64 of 80", len(shown), len(keys))
		}
	})
}
