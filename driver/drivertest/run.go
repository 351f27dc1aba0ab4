package drivertest

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// Run tries the driver that newHarness opens against every law, or against these, a subtest each,
// in real time. At the end it lists what was not tried: what the harness has excused, and what the
// driver does not have of what is optional.
func Run(t *testing.T, newHarness func(t *testing.T) Harness, laws ...Law) {
	t.Helper()
	if len(laws) == 0 {
		laws = Laws()
	}
	run(t, laws, func(t *testing.T, l Law, excuse func(string)) { l.attempt(t, newHarness(t), excuse) })
}

func run(t *testing.T, laws []Law, try func(t *testing.T, l Law, excuse func(string))) {
	t.Helper()
	var mu sync.Mutex
	var excuses []string
	excuse := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(excuses, what) { // a trial that was void is followed by another one
			excuses = append(excuses, what)
		}
	}
	for _, law := range laws {
		t.Run(law.Name, func(t *testing.T) { try(t, law, excuse) })
	}
	if len(excuses) > 0 {
		t.Logf("not tried, and why:\n%s", strings.Join(excuses, "\n"))
	}
}

// RunBubble is Run with each subtest inside a testing/synctest bubble of its own, where time passes
// at once and exactly. It is for stores in memory: newHarness is called inside the bubble and must
// not leave it.
func RunBubble(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Helper()
	run(t, Laws(), func(t *testing.T, l Law, excuse func(string)) {
		synctest.Test(t, func(t *testing.T) { l.attempt(t, newHarness(t), excuse) })
	})
}
