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

// errand sends the standing claim c from a goroutine of its own, after a pause.
func (p *Pool) errand(ctx context.Context, c *claim, pause time.Duration) {
	if pause > 0 {
		keepalive.Rest(ctx, pause)
	}
	if p.send(ctx, c, p.Clock.Now()) {
		p.await(ctx, c)
	}
}

// send sends the claim c to the store once, and acts on the answer. started is the time, or a
// little before. It reports whether c stands in the store's line, where the caller is to await it.
// ctx may be that of the goroutine that wants the lock: the common case costs no other goroutine.
func (p *Pool) send(ctx context.Context, c *claim, started clock.Instant) (queued bool) {
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
	now := p.Clock.Look() // the machine may have been suspended since it was sent
	gaveUp := err != nil && ended(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.silence.End()
	queued = p.answered(c, gaveUp && ctx != c.ctx, started, now, g, err)
	if w := c.line.waiters.first; w != nil {
		p.expectPatience(w, now)
	}
	return queued
}

// tryPatience is how long a try waits for a store that does not answer.
const tryPatience = 2 * time.Second

// begin bounds the call, and makes c a claim of the session, if there is one: it reports whether. An
// attempt goes on for half of what is left of the first waiter's patience, so that another one
// fits, and for tryPatience if it is for a try.
func (p *Pool) begin(call *lazyctx.Context, c *claim, now clock.Instant) (joined bool, _ error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silence.Begin(now) // it ends where the answer is acted on
	s := p.keeper.Session
	first, err := p.join(c, s)
	if err != nil {
		return false, err
	}
	bound := keepalive.OneTry(p.patienceOf(first, now), p.Patience)
	if first.Try {
		bound = min(bound, tryPatience)
	}
	call.Limit(max(bound, time.Millisecond))
	c.call = call
	return s != nil, nil
}

// open opens a session, and makes c a claim of it. It returns the time after that.
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

// join makes c a claim of s, unless that is nil, and returns the first waiter, or an error if c is
// wanted no more.
func (p *Pool) join(c *claim, s *keepalive.Session) (first *waiter, _ error) {
	l := c.line
	if s != nil {
		l.admit(s)
	}
	if first = l.waiters.first; first == nil || l.standing != c && !slices.Contains(l.beside, c) { // given up
		return nil, driver.ErrNotSent
	}
	if s != nil {
		c.session = s
		s.Track(c.ID, c, first.Grace)
	}
	return first, nil
}

// answered acts on what became of the claim c between started and now, which a look at the clock
// gave. gaveUp says that whoever wants it and asked for it waits no longer. It reports whether c is
// to be awaited.
func (p *Pool) answered(c *claim, gaveUp bool, started, now clock.Instant, g driver.Grant, err error) (queued bool) {
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
			l.admit(c.session)
		}
	}
	switch {
	case len(l.beside) > 0 && l.aside(c):
		l.tried(c, g, now, err)
	case l.standing != c: // given up meanwhile
		c.discard()
		p.tidy(l)
	case err != nil:
		l.failed(c, gaveUp, err)
	case g.Held:
		if l.grant(c, now); c.Kind == driver.Permit {
			l.widen()
		}
	case c.Queue:
		l.failures, l.excused, l.abreast = 0, false, 0
		c.state, c.inWay = waiting, g.Holder
		if l.settle(); l.standing == c {
			return true
		}
		c.discard() // it stood for a try only, the last that was left of those who wanted it
	default:
		c.session.Untrack(c.ID)
		l.standing, l.failures, l.excused, l.abreast = nil, 0, false, 0
		w := l.waiters.first
		l.waiters.remove(w)
		w.fail(p.Held(g.Holder))
		l.settle()
	}
	return false
}

// failed handles an Acquire of the standing claim that was not answered with a state. What is known
// is acted on; what is unknown is released.
func (l *line) failed(c *claim, gaveUp bool, err error) {
	p := l.host
	l.standing, l.abreast = nil, 0
	c.stop()
	c.forgo(err)
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
	case gaveUp: // it leaves the line by itself; and that is no failure of the store, for which the next would pause
	case (errors.Is(err, driver.ErrSessionLost) || errors.Is(err, driver.ErrGone)) && l.failures == 0 && !l.excused:
		l.excused = true // and asked again, with a new session if that is what was lost
		p.silence.Answered(now)
	default:
		l.failures++
		p.silence.Failed(now, err)
	}
	l.settle()
}

// refused reports whether err ends the wait of those whom the claim stood for.
func refused(err error) bool {
	return fault.Final(err) || errors.Is(err, driver.ErrBroken) || errors.Is(err, driver.ErrUnable)
}

// ended reports whether ctx is over, or is about to be: its timer may come a little after one for
// the same moment that has ended a request.
func ended(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}
