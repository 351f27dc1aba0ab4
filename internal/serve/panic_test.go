package serve

import (
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// A driver that panics, as it is opened or later, is a store that is down: the server and the other
// stores go on, and the log has where it was.
func TestDriverThatPanicsEndsNothing(t *testing.T) {
	t.Parallel()
	one, at := newTried(t)
	_, other := newTried(t)
	one.set(func() { one.panics = true })
	s := serves(t, &Options{Stores: [][2]string{{"one", at}, {"other", other}}})
	ready := func(status int, says string) {
		t.Helper()
		eventually(t, says, func() bool {
			a := s.ask("GET", "/readyz", "")
			return a.status == status && strings.Contains(a.body, says)
		})
	}
	ready(503, `"one":"down","other":"up"`)
	const says = `msg="the driver of store \"one\" has panicked"`
	if !s.log.has(says) || !s.log.has("(*tried).fault") {
		t.Errorf("the log does not say where it was:\n%s", s.log)
	}
	one.set(func() { one.panics = false })
	ready(200, `"one":"up","other":"up"`)

	one.set(func() { one.panics = true })
	if a := s.ask("GET", "/metrics", ""); a.status != 200 || !strings.Contains(a.body, `interlock_store_up{store="other"} 1`) {
		t.Errorf("the metrics: %d\n%s", a.status, a.body)
	}
	if a := s.ask("GET", "/v1/lines?store=one", ""); a.status != 503 || !strings.Contains(a.body, "has panicked") {
		t.Errorf("its list: %d\n%s", a.status, a.body)
	}
	if a := s.ask("GET", "/v1/lines?store=other", ""); a.status != 200 {
		t.Errorf("the list of the other: %d\n%s", a.status, a.body)
	}
	ready(503, `"one":"down","other":"up"`)
	one.set(func() { one.panics = false })
	ready(200, `"one":"up","other":"up"`)
}

// The page of the stores has the checks that a store brings: the driver is not hidden by what opens
// it again.
func TestPageHasTheChecksOfTheStore(t *testing.T) {
	t.Parallel()
	one, at := newTried(t)
	one.set(func() {
		one.finds = []driver.Finding{{Code: "R1", Title: "eviction", Level: driver.LevelBad, Seen: "keys are evicted", Why: "a lock goes", Mend: "set noeviction"}}
	})
	s := serves(t, &Options{Stores: [][2]string{{"one", at}}})
	eventually(t, "the finding", func() bool {
		return strings.Contains(s.ask("GET", "/v1/stores", "").body, `"seen":"keys are evicted"`)
	})
}
