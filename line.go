package interlock

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
)

// line is the local line of one name: the goroutines of this client that want it, in order of arrival, and the few
// claims that stand for them in the store's line. At most one claim waits there at a time, made for whoever is first
// here; exclusive holders share one claim one after the other (see pass), readers share one at the same time, and
// permits have one each. Where permits are free, several are asked for side by side: see spread.
//
//	enter ─▶ waiters ─▶ standing: asking ─▶ waiting ─▶ held ─▶ holds ─▶ leave
//	            ▲                    └──────────────────▲                 │
//	            └── joins a read claim, or is passed an exclusive one ◀───┘
//
// Everything here is guarded by pool.mu.
type line struct {
	pool     *pool
	name     string
	waiters  queue
	standing *claim   // asked for or waiting at the store
	beside   []*claim // permits that are tried for beside it: see spread
	abreast  int      // how many of those there may be
	held     []*claim
	only     [1]*claim // what held is where there is one
	tries    int       // of the waiters, those who will not wait
	failures int       // attempts without an answer in a row
	late     int       // grants in a row that came too late to be used
	passes   int       // in all, for people
}

// tenure is how long a claim may be passed on, or joined by readers, before the client stands again at the end of the
// store's line. With driver.Stride it bounds what other processes wait for.
const tenure = 10 * time.Millisecond

// line returns the local line of name.
func (p *pool) line(name string) *line {
	l := p.lines[name]
	if l == nil {
		l = &line{pool: p, name: name}
		l.held = l.only[:0]
		p.lines[name] = l
	}
	return l
}

// tidy drops a line in which nobody is left.
func (p *pool) tidy(l *line) {
	if l.waiters.length > 0 || l.standing != nil || len(l.beside) > 0 || len(l.held) > 0 || p.lines[l.name] != l {
		return
	}
	delete(p.lines, l.name)
	if p.isolated && len(p.lines) == 0 && (p.session == nil || len(p.session.claims) == 0) {
		p.forget()
	}
}

func (l *line) first() *waiter { return l.waiters.first }

// enter puts w into the line, or grants it at once what is here already. It returns the claim that w is to ask the
// store for, if it is w's turn to do so.
func (l *line) enter(w *waiter) (*claim, error) {
	p := l.pool
	if p.closing != nil {
		return nil, p.closing
	}
	if l.waiters.length == 0 && w.kind == driver.Read {
		if c := l.joinable(w); c != nil {
			l.give(c, w, 0, w.since)
			return nil, nil
		}
	}
	if w.try && (l.exclusive() || l.failures > 0 && p.silence.err != nil || l.standing != nil && l.standing.state == waiting) {
		return nil, l.refusal()
	}
	if l.waiters.length >= p.client.opts.MaxWaiters {
		return nil, ErrTooManyWaiters
	}
	l.waiters.push(w)
	p.waiting++
	if w.try {
		l.tries++
	}
	return l.advance(), nil
}

// remove takes w out of the waiters.
func (l *line) remove(w *waiter) {
	l.waiters.remove(w)
	l.pool.waiting--
	if w.try {
		l.tries--
	}
}

// exclusive reports whether a claim is held here that keeps out everybody else here, too.
func (l *line) exclusive() bool {
	return slices.ContainsFunc(l.held, func(c *claim) bool { return c.Kind.Exclusive() })
}

// joinable returns the read claim that w may share: the youngest one, within its tenure. An older one that has not
// drained extends that, so that a client never has more than two: whoever waits behind the younger waits for the older
// in any case.
func (l *line) joinable(w *waiter) *claim {
	if len(l.held) == 0 || l.pool.isolated {
		return nil
	}
	c, now := l.held[len(l.held)-1], w.since
	switch {
	case c.Kind != driver.Read || c.Note != w.note || c.gone != nil || c.private || w.settings.minHold > 0:
		return nil
	case c.until(w.grace).Sub(now) < w.grace:
		return nil
	case now.Sub(c.granted) >= tenure && len(l.held) == 1:
		return nil
	}
	return c
}

// advance makes the claim that is to be asked for now: for whoever is first, unless a claim is standing or an exclusive
// one is held. The caller sends it, by ask in its own goroutine or by errand in another.
func (l *line) advance() *claim {
	w := l.first()
	if w == nil || l.standing != nil || l.exclusive() || len(l.beside) >= l.waiters.length { // those may be enough
		return nil
	}
	l.standing = l.claimFor(w)
	return l.standing
}

func (l *line) claimFor(w *waiter) *claim {
	c := &claim{line: l, private: w.settings.minHold > 0 || w.settings.noPassing}
	c.Claim = driver.Claim{
		Name: l.name, ID: driver.NewID(), Kind: w.kind, Weight: w.weight, Limit: w.limit, Queue: !w.try, Note: w.note,
		Passes: l.passes,
	}
	return c
}

// start is advance for a caller that does not send the claim itself. After a failure there is a pause first, whoever
// calls: a store that fails is not asked without end.
func (p *pool) start(l *line) {
	pause := time.Duration(0)
	if w := l.first(); w != nil && l.failures > 0 {
		now := p.client.clock.Now()
		pause = min(backoff(l.failures), max(p.patience(w, now).Sub(now), 0))
	}
	p.startAfter(l, pause)
}

func (p *pool) startAfter(l *line, pause time.Duration) {
	if c := l.advance(); c != nil {
		go p.errand(c.background(), c, pause)
		return
	}
	p.tidy(l)
}

// withdraw takes a waiter out that does not want to wait any longer. If the standing claim was for it and suits nobody
// else, it is given up: whoever runs its errand finds that it stands no more, and releases it.
func (l *line) withdraw(w *waiter) {
	l.remove(w)
	l.refit()
	l.pool.start(l)
}

// refit gives up the standing claim if it does not suit whoever is first now, and what is asked for beside it if nobody is.
func (l *line) refit() {
	first := l.first()
	if c := l.standing; c != nil && !c.fits(first) {
		l.standing = nil
		c.settled()
	}
	if first == nil {
		for _, c := range l.beside {
			c.settled()
		}
	}
}

// turnAway fails the waiters that which picks.
func (l *line) turnAway(why error, which func(*waiter) bool) {
	for w := l.waiters.first; w != nil; {
		next := w.next // gone from w when it has left
		if which(w) {
			l.remove(w)
			w.fail(why)
		}
		w = next
	}
	l.refit()
	l.pool.start(l)
}

// admit fails waiters who want a grace that s cannot give: the store may keep sessions for less than it was asked for.
// Any of them may come to be first, with a claim that was made for another. Who chose no grace has what there is. A renewal that came late may be good
// for less: that passes with the next one, and turns nobody away.
func (l *line) admit(s *session) {
	longest := longestGiven(max(s.valid, s.driver.Valid()))
	if w := l.first(); w == nil || w.grace <= longest {
		return
	}
	for w := l.first(); w != nil; w = w.next {
		if w.settings.anyGrace {
			w.grace = min(w.grace, longestGrace(s.valid))
		}
	}
	l.turnAway(noSuchGrace(s.valid), func(w *waiter) bool { return w.grace > longest })
}

// turnAwayTries fails those who will not wait, once it is known that they would have to.
func (l *line) turnAwayTries() {
	if l.tries == 0 || l.standing != nil && l.standing.state == asking || len(l.beside) > 0 {
		return
	}
	refusal := l.refusal()
	l.turnAway(refusal, func(w *waiter) bool { return w.try })
}

// refusal is the error of a try, or of a wait that ends: somebody has the name, or the store does not say.
func (l *line) refusal() error {
	for _, c := range l.held {
		return &HeldError{Holder: c.describe()}
	}
	if c := l.standing; c != nil && c.state == waiting && l.pool.silence.err == nil {
		return &HeldError{Holder: c.inWay}
	}
	return unavailable(l.pool.silence.err)
}

// grant takes in that the store has granted the standing claim, and serves it. A claim that has less than a grace of
// trust left would be lost before anything could be done with it: it is given back, and asked for anew.
func (l *line) grant(c *claim, g driver.Grant, now clock.Instant) {
	p := l.pool
	l.standing, l.failures = nil, 0
	c.settled()
	w := l.first()
	if grace := w.grace; c.until(grace).Sub(now) < grace {
		p.discard(c)
		l.failures++
		l.tooLate(c, now)
		p.start(l)
		return
	}
	l.late = 0
	l.hold(c, g, now)
	l.give(c, w, 0, now)
	for c.Kind == driver.Read && !c.private && !p.isolated {
		if w = l.first(); !c.fits(w) || w.settings.minHold > 0 {
			break
		}
		l.give(c, w, 0, now)
	}
	next := l.advance()
	l.turnAwayTries()
	if next != nil && l.standing == next { // the last of the tries may have been what it was for
		go p.errand(next.background(), next, 0)
	}
}

// hold takes in that c is held.
func (l *line) hold(c *claim, g driver.Grant, now clock.Instant) {
	c.state, c.granted, c.fence = held, now, g.Fence
	l.held = append(l.held, c)
}

// lateGrants is how many grants may come too late before those who wait for one are told: each takes the name from
// everybody else for a moment.
const lateGrants = 3

// tooLate counts a grant with too little trust left, and reports whether those for whom it was were told that there is never
// more.
func (l *line) tooLate(c *claim, now clock.Instant) bool {
	if l.late++; l.late < lateGrants {
		return false
	}
	left := max(c.until(0).Sub(now), 0)
	l.turnAway(fmt.Errorf("%w: granted %d times, and too late each time: it took the store %v, and of the %v for which it keeps a session no grace of %v was left twice; want a longer TTL or a shorter grace",
		ErrUnavailable, l.late, c.session.valid-left, c.session.valid, l.first().grace), c.fits)
	l.late = 0
	return true
}

// give lets w hold c, with the nth of its tokens.
func (l *line) give(c *claim, w *waiter, n int, now clock.Instant) {
	w.turn = hold{claim: c, grace: w.grace, minHold: w.settings.minHold, maxHold: w.settings.maxHold, since: now, passed: n > 0, sharers: 1}
	h := &w.turn
	if c.fence != 0 {
		h.fence = c.fence + uint64(n)
	}
	if c.holds == nil {
		c.holds = c.only[:0]
	}
	c.holds = append(c.holds, h)
	c.session.guard(h)
	l.pool.client.held()
	if w.stands {
		l.remove(w)
	}
	w.hold = h
	close(w.ready)
}

// pass hands c on to whoever is first here, without asking the store, and reports whether it did: at most Stride − 1
// times and for at most a tenure, so that other processes have their turn; only to a waiter of the same shape; and only
// while there is trust enough for a lease.
func (l *line) pass(c *claim, now clock.Instant) bool {
	w := l.first()
	if w == nil || !c.Kind.Exclusive() || !c.fits(w) || c.gone != nil || c.private || l.pool.isolated {
		return false
	}
	if l.pool.client.traits.Single {
		return false
	}
	if w.settings.minHold > 0 || w.settings.noPassing || c.passes == driver.Stride-1 {
		return false
	}
	if now.Sub(c.granted) >= tenure || c.until(w.grace).Sub(now) < w.grace {
		return false
	}
	c.passes++
	l.passes++
	l.give(c, w, c.passes, now)
	return true
}

// refused reports whether err ends the wait of those whom the claim stood for.
func refused(err error) bool {
	return final(err) || errors.Is(err, driver.ErrBroken) || errors.Is(err, driver.ErrUnable)
}
