package interlock

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
	"github.com/interlock-go/interlock/internal/lazyctx"
)

// errand sends the standing claim c from a goroutine of its own.
func (p *pool) errand(ctx context.Context, c *claim, pause time.Duration) {
	if pause == 0 {
		p.ask(ctx, c)
		return
	}
	rest(ctx, pause)
	p.mu.Lock()
	if p.silence.err != nil {
		p.trouble(p.silence.err) // the pause may have been the rest of somebody's patience
	}
	if c.line.standing == c {
		p.mu.Unlock()
		p.ask(ctx, c)
		return
	}
	p.tidy(c.line)
	p.mu.Unlock()
}

// ask sends the standing claim c to the store once, and takes in the answer. ctx may be that of the goroutine that
// wants the lock, when it runs its own errand: the common case costs no other goroutine.
func (p *pool) ask(ctx context.Context, c *claim) {
	started, g, err := p.send(ctx, c)
	now := p.client.clock.Look() // the machine may have been suspended since it was sent
	gaveUp := err != nil && ended(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer(c, gaveUp && ctx != c.ctx, started, now, g, err)
	p.silence.end()
}

// answer takes in what became of the standing claim c between started and now, which a look at the clock gave. gaveUp
// says that whoever wants it and asked for it waits no longer.
func (p *pool) answer(c *claim, gaveUp bool, started, now clock.Instant, g driver.Grant, err error) {
	l := c.line
	switch { // what the store said by itself while the answer was under way is younger
	case err == nil && c.session.over:
		err = driver.ErrSessionLost
	case err == nil:
		err = c.gone
	}
	if err == nil {
		p.answered(now)
		c.acquired, c.known = started, now
		if l.wants(c) && g.Held {
			l.admit(c.session)
		}
	}
	if l.aside(c) {
		p.tried(c, g, now, err)
		return
	}
	if l.standing != c { // given up meanwhile
		if c.session != nil {
			p.discard(c)
		}
		p.tidy(l)
		return
	}
	switch {
	case err == nil && g.Held:
		l.grant(c, g, now)
		l.abreast = min(max(1, 2*l.abreast), mostAbreast)
		l.spread()
	case err == nil && c.Queue:
		l.failures, l.abreast = 0, 0
		c.state, c.inWay = waiting, g.Holder
		l.turnAwayTries()
		if l.standing == c {
			p.attended(c)
		} else { // it stood for a try only, the last that was left of those who wanted it
			p.discard(c)
			p.tidy(l)
		}
	case err == nil:
		c.session.untrack(c)
		l.standing, l.failures, l.abreast = nil, 0, 0
		w := l.first()
		l.remove(w)
		w.fail(&HeldError{Holder: g.Holder})
		p.start(l)
	default:
		p.failed(c, gaveUp, err)
	}
}

// tryPatience is how long whoever will not wait for others waits for a store that does not answer.
const tryPatience = 2 * time.Second

// send makes the call. An attempt goes on for half of what is left of the patience of whoever is first, so that another one
// fits, and for tryPatience if it is for a try.
func (p *pool) send(ctx context.Context, c *claim) (started clock.Instant, g driver.Grant, err error) {
	started = p.client.clock.Now()
	bounded := lazyctx.Under(ctx)
	defer bounded.Finish()
	p.mu.Lock()
	p.silence.begin(started) // it ends where the answer is taken in
	patience := p.client.opts.Patience
	bound := patience
	if w := c.line.first(); w != nil {
		bound = oneTry(p.patience(w, started).Sub(started), patience)
		if w.try {
			bound = min(bound, tryPatience)
		}
	}
	s := p.session
	bounded.Limit(max(bound, time.Millisecond))
	c.sending = bounded
	unwanted := !c.line.wants(c)
	p.mu.Unlock()
	if unwanted {
		return 0, g, driver.ErrNotSent
	}
	if s == nil {
		if s, err = p.open(bounded); err != nil {
			return 0, g, err
		}
		started = p.client.clock.Now()
	}
	p.mu.Lock()
	if s.over {
		p.mu.Unlock()
		return 0, g, driver.ErrSessionLost
	}
	if c.line.admit(s); !c.line.wants(c) {
		p.mu.Unlock()
		return 0, g, driver.ErrNotSent
	}
	c.session = s
	s.track(c)
	p.mu.Unlock()
	g, err = s.driver.Acquire(bounded, c.Claim)
	return started, g, err
}

// failed takes in that c was not answered with a state. What is known is acted on; what is unknown is released.
func (p *pool) failed(c *claim, gaveUp bool, err error) {
	l := c.line
	l.standing, l.abreast = nil, 0
	c.settled()
	p.forgo(c, err)
	if errors.Is(err, driver.ErrUnable) {
		err = unavailable(err)
	}
	switch {
	case refused(err):
		p.answered(p.client.clock.Now())
		w := l.first()
		l.remove(w)
		w.fail(err)
		p.start(l)
		return
	case gaveUp: // it withdraws by itself; and that is no failure of the store, for which the next would pause
		p.start(l)
		return
	}
	l.failures++
	if (errors.Is(err, driver.ErrSessionLost) || errors.Is(err, driver.ErrGone)) && l.failures == 1 {
		p.answered(p.client.clock.Now())
		p.startAfter(l, 0) // with a new session if that is what was lost
		return
	}
	p.silence.failed(p.client.clock.Now(), err)
	l.turnAwayTries()
	p.trouble(err)
	p.start(l)
}

// forgo acts on what an error says of where c stands.
func (p *pool) forgo(c *claim, err error) {
	switch s := c.session; {
	case s == nil:
	case errors.Is(err, driver.ErrSessionLost):
		s.end(err)
	case errors.Is(err, driver.ErrNotSent) || final(err):
		s.untrack(c)
	default:
		p.discard(c)
	}
}

// ended reports whether ctx is over, or is about to be: its timer may come a little after one for the same moment that has ended a
// request.
func ended(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// attended has somebody await c, if there is one: whoever is first here, or else a goroutine of its own.
func (p *pool) attended(c *claim) {
	switch {
	case c == nil:
	case c.line.standing != c: // given up before anybody came to await it
		p.discard(c)
		p.tidy(c.line)
	case !c.line.first().offer(c):
		go p.await(c.background(), c)
	}
}

// attend is await in the goroutine of w, for as long as w itself waits.
func (p *pool) attend(ctx context.Context, w *waiter, c *claim) {
	own := lazyctx.Under(ctx)
	defer own.Finish()
	cancel := func() { own.End(context.Canceled) } // which is called under the mutex
	p.mu.Lock()
	if !w.stands || c.line.standing != c {
		p.attended(c)
		p.mu.Unlock()
		return
	}
	if c.cancel != nil {
		c.cancel() // of what was done for it so far
	}
	c.ctx, c.cancel, w.interrupt = own, cancel, cancel
	p.mu.Unlock()
	p.await(own, c)
}

// mayBeEarly is how often in a row a driver's Wait may return within a millisecond with a claim that is still waiting.
const mayBeEarly = 16

// await waits in the store's line for a claim that was queued, until it is granted or given up.
func (p *pool) await(ctx context.Context, c *claim) {
	failures, early := 0, 0
	for {
		asked := p.client.clock.Now()
		g, err := c.session.driver.Wait(ctx, c.Claim)
		if waited := p.client.clock.Look().Sub(asked); waited > time.Millisecond {
			early = 0
		}
		over := ctx.Err() != nil
		p.mu.Lock()
		l := c.line
		if err == nil {
			err = c.gone // what the store said by itself is younger, here, too
		}
		if err == nil && g.Held {
			l.admit(c.session)
		}
		switch {
		case l.standing != c:
			p.discard(c)
			p.tidy(l)
			p.mu.Unlock()
			return
		case err == nil && g.Held && !p.stale(c):
			l.grant(c, g, p.client.clock.Now())
			p.mu.Unlock()
			return
		case refused(err):
			p.sendAway(c, err)
			p.mu.Unlock()
			return
		case errors.Is(err, driver.ErrGone), errors.Is(err, driver.ErrSessionLost):
			l.standing = nil
			c.settled()
			if errors.Is(err, driver.ErrSessionLost) {
				c.session.end(err)
			}
			p.discard(c)
			p.start(l)
			p.mu.Unlock()
			return
		case over: // who awaited it waits no longer, and it stands for others
			c.ctx = nil
			go p.await(c.background(), c)
			p.mu.Unlock()
			return
		case err == nil && g.Held && l.tooLate(c, p.client.clock.Now()):
			l.standing = nil
			c.settled()
			p.discard(c)
			p.start(l)
			p.mu.Unlock()
			return
		case err == nil && g.Held:
			// Granted long after the last renewal: the lease may be over at the store. Renewed, it is known.
			valid := c.session.valid
			p.mu.Unlock()
			bounded := lazyctx.Within(ctx, valid)
			err = c.session.renew(bounded)
			bounded.Finish()
		case err == nil:
			failures = 0
			if g.Holder != nil {
				c.inWay = g.Holder
			}
			p.mu.Unlock()
			if early++; early > mayBeEarly { // a driver that does not wait at all must not keep a core busy
				rest(ctx, firstPause)
			}
		default:
			p.trouble(err)
			p.mu.Unlock()
		}
		if err != nil {
			failures++
			rest(ctx, backoff(failures))
		}
	}
}

// stale reports whether a grant that arrives now has too little trust left to be reported.
func (p *pool) stale(c *claim) bool {
	grace := c.line.first().grace
	return c.until(grace).Sub(p.client.clock.Now()) < grace
}

// sendAway fails everybody for whom c stood, because an operator broke it or the store refuses it.
func (p *pool) sendAway(c *claim, why error) {
	l := c.line
	l.standing = nil
	c.settled()
	p.discard(c)
	l.turnAway(why, c.fits)
}
