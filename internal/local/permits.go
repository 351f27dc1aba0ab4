package local

import (
	"slices"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
)

// maxExtra is how many permits of a name are tried for at the same time beside the claim that
// stands in line.
const maxExtra = 32

// raiseExtra doubles the limit of extra claims, from 1, after a claim was held at once, and sends
// as many. The limit is 0 again when somebody has to wait. So a hundred goroutines take a hundred
// free permits in eight rounds, and where there are none left one claim waits at the store.
func (l *line) raiseExtra() {
	l.extraLimit = min(max(1, 2*l.extraLimit), maxExtra)
	l.acquireExtra()
}

// acquireExtra sends claims beside the pending one, for the next waiters that want as many permits
// as the first: as tries, which leave nothing behind where they are denied.
//
// A grant goes to the first waiter, whichever claim it was, so nobody is overtaken: not among those
// who want the same; and a waiter who wants more or less ends the row of those for whom claims are
// sent.
func (l *line) acquireExtra() {
	p, first := l.host, l.waiters.first
	if p.isolated || first == nil || first.Kind != driver.Permit || l.failures > 0 {
		return
	}
	asked := len(l.extra)
	if l.pending != nil {
		asked++
	}
	alike := 0
	for w := first; w != nil && w.Mode == first.Mode && alike < asked+l.extraLimit; w = w.next {
		alike++
	}
	for ; len(l.extra) < l.extraLimit && asked < alike; asked++ {
		c := l.claimFor(first)
		c.Queue = false
		l.extra = append(l.extra, c)
		p.actions.acquireAfter(c, 0)
	}
}

// removeExtra takes c out of the extra claims, and reports whether it was one.
func (l *line) removeExtra(c *claim) bool {
	i := slices.Index(l.extra, c)
	if i >= 0 {
		l.extra = slices.Delete(l.extra, i, i+1)
	}
	return i >= 0
}

// onExtraAnswer handles the result of an Acquire of an extra claim. An error fails nobody: the
// pending claim meets the same.
func (l *line) onExtraAnswer(c *claim, g driver.Grant, now clock.Instant, err error) {
	c.stop()
	w := l.waiters.first
	switch {
	case err != nil:
		l.extraLimit = 0
		c.cleanUpAfter(err)
	case !g.Held:
		l.extraLimit = 0
		c.session.Untrack(c.ID)
	case !c.alike(w) || !c.fresh(w.Grace, now):
		c.releaseInBackground()
	default:
		l.give(c, w, 0, now)
		l.settle()
		l.acquireExtra()
		return
	}
	l.settle()
}
