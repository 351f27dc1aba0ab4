package local

import (
	"slices"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
)

// mostAbreast is how many permits of a name are tried for at the same time beside the claim that
// stands in line.
const mostAbreast = 32

// widen asks for more permits abreast after a claim was held at once: for one beside the next, and
// the number doubles as long as that goes well. It is 0 again when somebody has to wait. So a
// hundred goroutines take a hundred free permits in eight rounds, and where there are none left one
// claim waits at the store, as ever.
func (l *line) widen() {
	l.abreast = min(max(1, 2*l.abreast), mostAbreast)
	l.spread()
}

// spread asks for more permits beside the standing claim, if those who come next here want as many
// as the first: as tries, each of which leaves nothing behind where it is denied.
//
// What is got goes to the first waiter here, whichever request it was, so nobody is overtaken: not
// by one who wants the same, and one who wants more or less ends the row of those for whom is
// asked.
func (l *line) spread() {
	p, first := l.host, l.waiters.first
	if p.isolated || first == nil || first.Kind != driver.Permit || l.failures > 0 {
		return
	}
	asked := len(l.beside)
	if l.standing != nil {
		asked++
	}
	alike := 0
	for w := first; w != nil && w.Shape == first.Shape && alike < asked+l.abreast; w = w.next {
		alike++
	}
	for ; len(l.beside) < l.abreast && asked < alike; asked++ {
		c := l.claimFor(first)
		c.Queue = false
		l.beside = append(l.beside, c)
		p.actions.ask(c, 0)
	}
}

// aside takes c out of those that are tried for beside the standing one, and reports whether it was
// among them.
func (l *line) aside(c *claim) bool {
	i := slices.Index(l.beside, c)
	if i >= 0 {
		l.beside = slices.Delete(l.beside, i, i+1)
	}
	return i >= 0
}

// tried acts on what became of a claim that was tried for beside the standing one. What failed says
// nothing to anybody: the standing one meets the same.
func (l *line) tried(c *claim, g driver.Grant, now clock.Instant, err error) {
	c.stop()
	w := l.waiters.first
	switch {
	case err != nil:
		l.abreast = 0
		c.forgo(err)
	case !g.Held:
		l.abreast = 0
		c.session.Untrack(c.ID)
	case !c.alike(w) || !c.fresh(w.Grace, now):
		c.discard()
	default:
		l.give(c, w, 0, now)
		l.settle()
		l.spread()
		return
	}
	l.settle()
}
