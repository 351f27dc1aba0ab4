package local

import (
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
	"github.com/interlock-go/interlock/internal/fault"
	"github.com/interlock-go/interlock/internal/keepalive"
)

// line is the local line of one name. At most one claim waits in the store's line at a time, made
// for the first waiter here; exclusive holders share one claim one after the other (see pass),
// readers share one at the same time, and permits have one each. Where permits are free, several
// are asked for side by side: see acquireExtra.
//
// After every event settle restores the invariant: the first waiter has a claim that stands for it,
// or that it may be passed, and nobody waits who will not.
//
// Everything here is guarded by the mutex of its host.
type line struct {
	host       *host
	name       string
	waiters    queue
	pending    *claim   // asked for or waiting at the store
	extra      []*claim // permits that are tried for beside it: see acquireExtra
	extraLimit int      // how many of those there may be
	held       []*claim
	only       [1]*claim // what held is where there is one
	failures   int       // attempts without an answer in a row
	retried    bool      // since the last answer, at once, because the session was lost
	late       int       // grants in a row that came too late to be used
	passes     int       // in all, for people
}

// passWindow is how long a claim may be passed on, or joined by readers, before the client stands
// again at the end of the store's line. With driver.Stride it bounds what other processes wait for.
const passWindow = 10 * time.Millisecond

// enter puts w into the line, or grants it at once what is here already. It returns the claim that
// w is to ask the store for, if it is w's turn to do so.
func (l *line) enter(w *waiter) (*claim, error) {
	p := l.host
	if p.closing != nil {
		return nil, p.closing
	}
	if l.waiters.length == 0 && w.Kind == driver.Read {
		if c := l.joinable(w); c != nil {
			l.give(c, w, 0, w.since)
			return nil, nil
		}
	}
	if w.Try && l.blocked() {
		return nil, l.refusal()
	}
	if l.waiters.length >= p.MaxWaiters {
		return nil, fault.ErrTooManyWaiters
	}
	l.waiters.push(w)
	return l.advance(), nil
}

// advance makes the claim that is to be sent now: for the first waiter, unless a claim is pending
// or an exclusive one is held. The caller sends it, by acquire in its own goroutine, or by
// acquireAfter in another.
func (l *line) advance() *claim {
	w := l.waiters.first
	switch {
	case w == nil || l.pending != nil || len(l.held) > 0 && l.exclusive():
		return nil
	case len(l.extra) >= l.waiters.length: // those may be enough
		return nil
	}
	l.pending = l.claimFor(w)
	return l.pending
}

func (l *line) claimFor(w *waiter) *claim {
	c := &claim{line: l, alone: w.MinHold > 0 || w.Alone}
	c.Claim = driver.Claim{
		Name: l.name, ID: driver.NewID(), Kind: w.Kind, Weight: w.Weight, Limit: w.Limit, Queue: !w.Try, Note: w.Note,
		Passes: l.passes,
	}
	return c
}

// settle restores the invariant of the line. After a failure there is a pause before the store is
// asked again, whatever the event: a store that fails is not asked without end.
func (l *line) settle() {
	if l.waiters.tries > 0 && l.blocked() {
		l.reject(l.refusal(), func(w *waiter) bool { return w.Try })
	}
	first := l.waiters.first
	if c := l.pending; c != nil && !c.fits(first) { // given up: acquire or waitRemote finds that, and releases it
		l.pending = nil
		c.stop()
	}
	if first == nil {
		for _, c := range l.extra {
			c.stop()
		}
		if len(l.held) == 0 {
			l.host.actions.removeIfIdle(l)
		}
		return
	}
	pause := time.Duration(0)
	if l.failures > 0 {
		pause = keepalive.Backoff(l.failures)
	}
	if c := l.advance(); c != nil {
		l.host.actions.acquireAfter(c, pause)
	}
}

// reject fails the waiters for which match returns true.
func (l *line) reject(why error, match func(*waiter) bool) {
	for w := l.waiters.first; w != nil; {
		next := w.next // gone from w when it has left
		if match(w) {
			l.waiters.remove(w)
			w.fail(why)
		}
		w = next
	}
}

// blocked reports whether it is known that the next to come has to wait.
func (l *line) blocked() bool {
	return l.exclusive() || l.failures > 0 && l.host.silence.Err() != nil || l.pending != nil && l.pending.state == waiting
}

// exclusive reports whether a claim is held here that keeps out everybody else here, too.
func (l *line) exclusive() bool {
	return slices.ContainsFunc(l.held, func(c *claim) bool { return c.Kind.Exclusive() })
}

// refusal is the error of a try, or of a wait that ends: somebody has the name, or the store does
// not say.
func (l *line) refusal() error {
	for _, c := range l.held {
		return l.host.Held(c.describe())
	}
	err := l.host.silence.Err()
	if c := l.pending; c != nil && c.state == waiting && err == nil {
		return l.host.Held(c.blocker)
	}
	return fault.Unavailable(err)
}

// joinable returns the read claim that w may share: the youngest one, within the pass window. An
// older one that has not drained extends that, so that a client never has more than two: those who
// wait behind the younger wait for the older in any case.
func (l *line) joinable(w *waiter) *claim {
	if len(l.held) == 0 || l.host.isolated {
		return nil
	}
	c, now := l.held[len(l.held)-1], w.since
	switch {
	case c.Kind != driver.Read || c.Note != w.Note || c.gone != nil || c.alone || w.MinHold > 0:
		return nil
	case !c.fresh(w.Grace, now):
		return nil
	case now.Sub(c.granted) >= passWindow && len(l.held) == 1:
		return nil
	}
	return c
}

// grant serves the pending claim, which the store has granted. One that came too late to be used
// is given back, and asked for anew.
func (l *line) grant(c *claim, now clock.Instant) {
	l.pending, l.failures, l.retried = nil, 0, false
	w := l.waiters.first
	if !c.fresh(w.Grace, now) {
		c.releaseInBackground()
		l.failures++
		l.tooLate(c, now)
		l.settle()
		return
	}
	l.late = 0
	l.give(c, w, 0, now)
	for c.Kind == driver.Read && !c.alone && !l.host.isolated {
		if w = l.waiters.first; !c.fits(w) || w.MinHold > 0 {
			break
		}
		l.give(c, w, 0, now)
	}
	l.settle()
}

// give lets w hold c, with the nth of its tokens.
func (l *line) give(c *claim, w *waiter, n int, now clock.Instant) {
	if c.state != held {
		c.state, c.granted = held, now
		l.held = append(l.held, c)
	}
	w.own = Hold{Passed: n > 0, claim: c, grace: w.Grace, minHold: w.MinHold, maxHold: w.MaxHold, maximum: clock.Never, since: now, sharers: 1}
	h := &w.own
	if c.fence != 0 {
		h.Fence = c.fence + uint64(n)
	}
	if c.holds == nil {
		c.holds = c.only[:0]
	}
	c.holds = append(c.holds, h)
	c.session.Guard(c.until(h.grace), h.grace)
	l.host.Holds.Add(1)
	if w.queued {
		l.waiters.remove(w)
	}
	w.hold = h
	w.decided()
}

// pass hands c on to the first waiter here, without asking the store, and reports whether it did:
// at most Stride − 1 times and within the pass window, so that other processes have their turn;
// only to a waiter of the same shape; and only while there is trust enough for a lease.
func (l *line) pass(c *claim, now clock.Instant) bool {
	w := l.waiters.first
	switch {
	case w == nil || !c.Kind.Exclusive() || !c.fits(w) || c.gone != nil || c.alone || l.host.isolated || l.host.NoPassing:
		return false
	case w.MinHold > 0 || w.Alone || c.passes == driver.Stride-1:
		return false
	case now.Sub(c.granted) >= passWindow || !c.fresh(w.Grace, now):
		return false
	}
	c.passes++
	l.passes++
	l.give(c, w, c.passes, now)
	return true
}

// lateGrants is how many grants may come too late before those who wait for one are told: each
// takes the name from everybody else for a moment.
const lateGrants = 3

// tooLate counts a grant with too little trust left, and reports whether those for whom it was were
// told that there is never more.
func (l *line) tooLate(c *claim, now clock.Instant) bool {
	if l.late++; l.late < lateGrants {
		return false
	}
	valid := c.session.Valid
	left := max(c.until(0).Sub(now), 0)
	l.reject(fmt.Errorf("%w: granted %d times, and too late each time: it took the store %v, and of the %v for which it keeps a session no grace of %v was left twice; want a longer TTL or a shorter grace",
		fault.ErrUnavailable, l.late, valid-left, valid, l.waiters.first.Grace), c.fits)
	l.late = 0
	return true
}
