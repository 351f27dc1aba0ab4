package interlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/mutant"
)

// errand sends the standing claim c from a goroutine of its own.
func (p *pool) errand(ctx context.Context, c *claim, pause time.Duration) {
	if pause == 0 {
		p.ask(ctx, c)
		return
	}
	rest(ctx, pause)
	p.mu.Lock()
	p.trouble(p.lastErr) // the pause may have been the rest of somebody's patience
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
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer(ctx, c, started, g, err)
}

// answer takes in what became of the standing claim c.
func (p *pool) answer(ctx context.Context, c *claim, started instant, g driver.Grant, err error) {
	l, now := c.line, p.client.clock.now()
	switch { // what the store said by itself while the answer was under way is younger
	case err == nil && c.session.over:
		err = driver.ErrSessionLost
	case err == nil && c.gone:
		err = driver.ErrGone
	}
	if err == nil {
		p.answered(now)
		c.acquired = started
		if l.standing == c && g.Held {
			l.admit(c.session)
		}
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
	case err == nil && c.Queue:
		l.failures = 0
		c.state, c.inWay = waiting, g.Holder
		l.turnAwayTries()
		if l.standing == c {
			go p.await(c.background(), c)
		} else if !mutant.On("core-try") { // it stood for a try only, the last that was left of those who wanted it
			p.discard(c)
			p.tidy(l)
		}
	case err == nil:
		c.session.untrack(c)
		l.standing, l.failures = nil, 0
		w := l.first()
		l.remove(w)
		w.fail(&HeldError{Holder: g.Holder})
		p.start(l)
	default:
		p.failed(ctx, c, err)
	}
}

// send makes the call. An attempt goes on for no longer than the session could be trusted afterwards, nor longer than
// the patience of whoever is first.
func (p *pool) send(ctx context.Context, c *claim) (started instant, g driver.Grant, err error) {
	started = p.client.clock.now()
	p.mu.Lock()
	bound := p.client.opts.Patience
	if w := c.line.first(); w != nil {
		bound -= started.sub(max(w.since, p.lastAnswer))
	}
	s := p.session
	bounded := within(ctx, max(bound, time.Millisecond))
	defer bounded.finish()
	c.sending = bounded
	unwanted := c.line.standing != c
	p.mu.Unlock()
	if unwanted {
		return 0, g, driver.ErrNotSent
	}
	if s == nil {
		if s, err = p.open(bounded); err != nil {
			return 0, g, err
		}
		started = p.client.clock.now()
	}
	p.mu.Lock()
	if s.over {
		p.mu.Unlock()
		return 0, g, driver.ErrSessionLost
	}
	if c.line.admit(s); c.line.standing != c {
		p.mu.Unlock()
		return 0, g, driver.ErrNotSent
	}
	c.session = s
	s.track(c)
	p.mu.Unlock()
	g, err = s.driver.Acquire(bounded, c.Claim)
	if mutant.On("L5-acquire") {
		started = p.client.clock.now()
	}
	return started, g, err
}

// failed takes in that c was not answered with a state. What is known is acted on; what is unknown is released.
func (p *pool) failed(ctx context.Context, c *claim, err error) {
	l := c.line
	l.standing = nil
	c.settled()
	if s := c.session; s != nil {
		switch {
		case errors.Is(err, driver.ErrSessionLost):
			s.end(err)
		case errors.Is(err, driver.ErrNotSent) || final(err):
			s.untrack(c)
		case mutant.On("A3") && ctx.Err() != nil, mutant.On("A13") && ctx.Err() == nil:
			s.untrack(c)
		default:
			p.discard(c)
		}
	}
	switch {
	case refused(err):
		p.answered(p.client.clock.now())
		w := l.first()
		l.remove(w)
		w.fail(err)
		p.start(l)
		return
	case ctx != c.ctx && ctx.Err() != nil:
		// The caller gave up; it withdraws by itself. That is no failure of the store.
		l.failures++
		p.start(l)
		return
	}
	l.failures++
	if (errors.Is(err, driver.ErrSessionLost) || errors.Is(err, driver.ErrGone)) && l.failures == 1 {
		p.answered(p.client.clock.now())
		p.startAfter(l, 0) // with a new session if that is what was lost
		return
	}
	p.lastErr = err
	l.turnAwayTries()
	p.trouble(err)
	p.start(l)
}

// await waits in the store's line for a claim that was queued, until it is granted or given up.
func (p *pool) await(ctx context.Context, c *claim) {
	for failures := 0; ; {
		g, err := c.session.driver.Wait(ctx, c.Claim)
		p.mu.Lock()
		l := c.line
		if err == nil && c.gone {
			err = driver.ErrGone
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
			l.grant(c, g, p.client.clock.now())
			p.mu.Unlock()
			return
		case err == nil && g.Held:
			// Granted long after the last renewal: the lease may be over at the store. Renewed, it is known.
			bounded := within(ctx, c.session.valid)
			p.mu.Unlock()
			err = c.session.renew(bounded)
			bounded.finish()
		case err == nil:
			failures = 0
			if g.Holder != nil {
				c.inWay = g.Holder
			}
			p.mu.Unlock()
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
	if mutant.On("core-stale") {
		return false
	}
	grace := c.line.first().settings.grace
	return c.until(grace).sub(p.client.clock.now()) < grace
}

// sendAway fails everybody for whom c stood, because an operator broke it or the store refuses it.
func (p *pool) sendAway(c *claim, why error) {
	l := c.line
	l.standing = nil
	c.settled()
	p.discard(c)
	l.turnAway(why, c.fits)
}

// discard gives c back to the store in the background: its outcome is unknown or nobody wants it any more. When as much
// is being given back already as there may be, c waits for its turn among the session's orphans.
func (p *pool) discard(c *claim) {
	s := c.session
	if s.over {
		return
	}
	release := func(ctx context.Context) error {
		_, err := s.driver.Release(ctx, c.Claim)
		if errors.Is(err, driver.ErrSessionLost) {
			return nil
		}
		return err
	}
	done := func(certain bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		s.untrack(c)
		if certain {
			s.adoptOrphans()
		}
	}
	if !p.client.cleaner.clean(s.valid, release, done) {
		if mutant.On("core-orphans") {
			s.untrack(c)
			return
		}
		s.orphans = append(s.orphans, c)
	}
}

// leave takes a hold out of the line: its lease was released, or lost a grace ago. The claim goes to the next goroutine
// here, or back to the store when its last hold has left. It returns ErrUncertain if the store has not confirmed that
// in time, and ErrLost if the store says that the claim was not held any more.
func (p *pool) leave(h *hold) error {
	p.mu.Lock()
	if h.left {
		p.mu.Unlock()
		return nil
	}
	now := p.client.clock.now()
	if keep := h.minHold - now.sub(h.granted); keep > 0 && !h.claim.gone && !mutant.On("core-minhold") {
		if h.leaving == nil {
			h.leaving = time.AfterFunc(keep, func() { _ = p.leave(h) })
		} else {
			h.leaving.Reset(keep) // it may have come a little early: the clock is not the timer's
		}
		p.mu.Unlock()
		return nil
	}
	h.left = true
	h.stop()
	c, l := h.claim, h.claim.line
	c.drop(h)
	if len(c.holds) > 0 && !mutant.On("A21") || h.lost == nil && l.pass(c, now) {
		p.mu.Unlock()
		p.client.unheld()
		return nil
	}
	l.drop(c)
	next := l.advance()
	trust := c.until(h.grace).sub(now)
	lost := h.lost != nil || c.gone
	p.mu.Unlock()
	defer p.client.unheld()
	if mutant.On("A15") && c.Kind == driver.Permit {
		return nil
	}
	if lost {
		p.giveBack(c, next)
		return nil
	}
	bounded := within(context.Background(), min(max(trust, time.Millisecond), lastWord))
	defer bounded.finish()
	return p.depart(bounded, c, next)
}

// giveBack is depart for a claim that was lost: nobody waits for the answer.
func (p *pool) giveBack(c, next *claim) {
	p.mu.Lock()
	p.discard(c)
	p.tidy(c.line)
	if next != nil {
		go p.errand(next.background(), next, 0)
	}
	p.mu.Unlock()
}

// depart releases c at the store and, if somebody waits here, stands again at the end of the line with next: in one
// step where the store can.
func (p *pool) depart(ctx context.Context, c, next *claim) error {
	s := c.session
	if r, ok := s.driver.(driver.Requeuer); ok && next != nil && p.adopt(next, s) {
		started := p.client.clock.now()
		g, wasHeld, err := r.Requeue(ctx, c.Claim, next.Claim)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.answer(next.background(), next, started, g, err)
		return p.departed(c, wasHeld, err)
	}
	wasHeld, err := s.driver.Release(ctx, c.Claim)
	p.mu.Lock()
	defer p.mu.Unlock()
	if next != nil {
		go p.errand(next.background(), next, 0)
	}
	return p.departed(c, wasHeld, err)
}

// departed takes in what became of the first release of c.
func (p *pool) departed(c *claim, wasHeld bool, err error) error {
	defer p.tidy(c.line)
	switch {
	case errors.Is(err, driver.ErrSessionLost):
		c.session.end(err)
		return lost(err)
	case err != nil:
		p.discard(c)
		return fmt.Errorf("%w: %w", ErrUncertain, err)
	}
	p.answered(p.client.clock.now())
	c.session.untrack(c)
	if !wasHeld {
		return lost(driver.ErrGone)
	}
	return nil
}

// adopt makes next a claim of the session, if that lives and next is still wanted.
func (p *pool) adopt(next *claim, s *session) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.over || next.line.standing != next {
		return false
	}
	next.session = s
	s.track(next)
	return true
}
