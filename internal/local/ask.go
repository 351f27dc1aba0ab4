package local

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
	"github.com/interlock-go/interlock/internal/fault"
	"github.com/interlock-go/interlock/internal/keepalive"
	"github.com/interlock-go/interlock/internal/lazyctx"
)

// acquire sends the claim c to the store once, and acts on the answer. It reports whether c stands
// in the store's line; then the caller has to await it. ctx may be that of the goroutine that wants
// the lock: the common case costs no other goroutine.
//
//  1. begin bounds the call and adds c to the session, under the mutex. Where there is no session,
//     open opens one.
//  2. The driver's Acquire runs under no mutex. Trust counts from started, a moment before it.
//  3. onAnswer moves the line, under the mutex again. Meanwhile the waiter may have left, the
//     session may have ended, and the store may have taken c back by itself: so it looks first
//     whether c is what the line waits for, and treats what the store said by itself as younger
//     than the answer.
func (p *Pool) acquire(ctx context.Context, c *claim, started clock.Instant) (queued bool) {
	call := lazyctx.Under(ctx)
	defer call.Finish()
	joined, err := p.begin(call, c, started)
	if err == nil && !joined {
		started, err = p.open(call, c) //nolint:contextcheck // it is made of ctx
	}
	var g driver.Grant
	if err == nil {
		g, err = c.session.Driver.Acquire(call, c.Claim) //nolint:contextcheck // likewise
	}
	now := p.Clock.NowSynced() // the machine may have been suspended since it was sent
	gaveUp := err != nil && ended(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.silence.End()
	queued = p.onAnswer(c, gaveUp && ctx != c.ctx, started, now, g, err)
	if w := c.line.waiters.first; w != nil {
		p.armPatience(w, now)
	}
	return queued
}

// tryPatience is how long a try waits for a store that does not answer.
const tryPatience = 2 * time.Second

// begin bounds the call, and adds c to the session. It reports false where there is none. A call
// lasts half of what is left of the first waiter's patience, so that another one fits, and at most
// tryPatience if it is for a try.
func (p *Pool) begin(call *lazyctx.Context, c *claim, now clock.Instant) (joined bool, _ error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silence.Begin(now) // it ends where the answer is acted on
	s := p.keeper.Session
	first, err := p.join(c, s)
	if err != nil {
		return false, err
	}
	bound := keepalive.TryTimeout(p.patienceOf(first, now), p.Patience)
	if first.Try {
		bound = min(bound, tryPatience)
	}
	call.Limit(max(bound, time.Millisecond))
	c.call = call
	return s != nil, nil
}

// open opens a session, adds c to it, and returns the time after that.
func (p *Pool) open(call *lazyctx.Context, c *claim) (now clock.Instant, err error) {
	s, err := p.keeper.Open(call)
	if err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Over {
		return 0, driver.ErrSessionLost
	}
	_, err = p.join(c, s)
	return p.Clock.Now(), err
}

// join adds c to the session s, unless that is nil. It returns the first waiter, or
// driver.ErrNotSent if nobody waits for c any more.
func (p *Pool) join(c *claim, s *keepalive.Session) (first *waiter, _ error) {
	l := c.line
	if s != nil {
		l.checkGrace(s)
	}
	if first = l.waiters.first; first == nil || l.pending != c && !slices.Contains(l.extra, c) { // given up
		return nil, driver.ErrNotSent
	}
	if s != nil {
		c.session = s
		s.Track(c.ID, c, first.Grace)
	}
	return first, nil
}

// onAnswer handles the result of an Acquire of c that lasted from started until now. gaveUp says
// that it ended because its caller's context did. It reports whether c has to be awaited.
func (p *Pool) onAnswer(c *claim, gaveUp bool, started, now clock.Instant, g driver.Grant, err error) (queued bool) {
	l := c.line
	switch { // what the store said by itself while the answer was under way is younger
	case err == nil && c.session.Over:
		err = driver.ErrSessionLost
	case err == nil:
		err = c.gone
	}
	if err == nil {
		p.silence.Answered(now)
		c.answered, c.acquired, c.known, c.fence = true, started, now, g.Fence
		if g.Held {
			l.checkGrace(c.session)
		}
	}
	switch {
	case len(l.extra) > 0 && l.removeExtra(c):
		l.onExtraAnswer(c, g, now, err)
	case l.pending != c: // given up meanwhile
		c.releaseInBackground()
		p.removeIfIdle(l)
	case err != nil:
		l.failed(c, gaveUp, err)
	case g.Held:
		if l.grant(c, now); c.Kind == driver.Permit {
			l.raiseExtra()
		}
	case c.Queue:
		l.failures, l.retried, l.extraLimit = 0, false, 0
		c.state, c.blocker = waiting, g.Holder
		if l.settle(); l.pending == c {
			return true
		}
		c.releaseInBackground() // it stood for a try only, the last that was left of those who wanted it
	default:
		c.session.Untrack(c.ID)
		l.pending, l.failures, l.retried, l.extraLimit = nil, 0, false, 0
		w := l.waiters.first
		l.waiters.remove(w)
		w.fail(p.Held(g.Holder))
		l.settle()
	}
	return false
}

// failed handles an Acquire of the pending claim that was not answered with a state. What is known
// is acted on; what is unknown is released.
func (l *line) failed(c *claim, gaveUp bool, err error) {
	p := l.host
	l.pending, l.extraLimit = nil, 0
	c.stop()
	c.cleanUpAfter(err)
	if errors.Is(err, driver.ErrUnable) {
		err = fault.Unavailable(err)
	}
	now := p.Clock.Now()
	switch {
	case refused(err):
		p.silence.Answered(now)
		w := l.waiters.first
		l.waiters.remove(w)
		w.fail(err)
	case gaveUp: // the caller leaves the line by itself; the next must not pause as after a failure of the store
	case (errors.Is(err, driver.ErrSessionLost) || errors.Is(err, driver.ErrGone)) && l.failures == 0 && !l.retried:
		l.retried = true // and asked again, with a new session if that is what was lost
		p.silence.Answered(now)
	default:
		l.failures++
		p.silence.Failed(now, err)
	}
	l.settle()
}

// refused reports whether err ends the wait of those for whom the claim was sent.
func refused(err error) bool {
	return fault.Final(err) || errors.Is(err, driver.ErrBroken) || errors.Is(err, driver.ErrUnable)
}

// ended reports whether ctx is over, or is about to be: its timer may come a little after one for
// the same moment that has ended a request.
func ended(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}
