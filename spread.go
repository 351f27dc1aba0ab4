package interlock

import (
	"slices"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
)

// mostAbreast is how many permits of a name are tried for at the same time beside the claim that stands in line.
const mostAbreast = 32

// spread asks for more permits beside the standing claim, if those who come next here want as many as whoever is first: as tries, each of
// which leaves nothing behind where it is denied. It begins when a claim was held at once, with one beside the next; the number doubles as
// long as that goes well, and is 0 again when somebody has to wait. So a hundred goroutines take a hundred free permits in eight rounds,
// and where there are none left one claim waits at the store, as ever.
//
// What is got goes to whoever is first here, whichever request it was, so nobody is overtaken: not by one who wants the same, and one who
// wants more or less ends the row of those for whom is asked.
func (l *line) spread() {
	p, first := l.pool, l.first()
	if p.isolated || first == nil || first.kind != driver.Permit || l.failures > 0 {
		return
	}
	asked := len(l.beside)
	if l.standing != nil {
		asked++
	}
	alike := 0
	for w := first; w != nil && w.shape == first.shape && alike < asked+l.abreast; w = w.next {
		alike++
	}
	for ; len(l.beside) < l.abreast && asked < alike; asked++ {
		c := l.claimFor(first)
		c.Queue = false
		l.beside = append(l.beside, c)
		go p.ask(c.background(), c)
	}
}

// wants reports whether c is asked for here.
func (l *line) wants(c *claim) bool { return l.standing == c || slices.Contains(l.beside, c) }

// aside takes c out of those that are tried for beside the standing one, and reports whether it was among them.
func (l *line) aside(c *claim) bool {
	i := slices.Index(l.beside, c)
	if i >= 0 {
		l.beside = slices.Delete(l.beside, i, i+1)
	}
	return i >= 0
}

// tried takes in what became of a claim that was tried for beside the standing one. What failed says nothing to anybody: the standing one
// meets the same.
func (p *pool) tried(c *claim, g driver.Grant, now clock.Instant, err error) {
	l := c.line
	c.settled()
	w := l.first()
	switch {
	case err != nil:
		l.abreast = 0
		p.forgo(c, err)
	case !g.Held:
		l.abreast = 0
		c.session.untrack(c)
	case !c.alike(w) || c.until(w.grace).Sub(now) < w.grace:
		p.discard(c)
	default:
		l.hold(c, g, now)
		l.give(c, w, 0, now)
		if w.interrupt != nil {
			w.interrupt() // it may be awaiting the standing one
		}
		l.refit()
		l.spread()
	}
	p.start(l)
}
