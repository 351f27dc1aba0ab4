package interlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
	"github.com/interlock-go/interlock/internal/lazyctx"
)

// leave takes a hold out of the line: its lease was released, or lost a grace ago. The claim goes to the next goroutine
// here, or back to the store when its last hold has left. It returns ErrUncertain if the store has not confirmed that
// in time, and ErrLost if the store says that the claim was not held any more.
func (p *pool) leave(h *hold) error {
	now := p.client.clock.Look() // the timers of Go stand still while the machine is suspended, and so would a MinHold
	p.mu.Lock()
	return p.vacate(h, now)
}

// vacate is leave with the pool's mutex held; it is not when vacate returns.
func (p *pool) vacate(h *hold, now clock.Instant) error {
	if h.left {
		p.mu.Unlock()
		return nil
	}
	if keep := h.minHold - now.Sub(h.since); keep > 0 && h.used && h.claim.gone == nil {
		keep = min(keep, longestSleep)
		if h.leaving == nil {
			h.leaving = time.AfterFunc(keep, func() { _ = p.leave(h) })
		} else {
			h.leaving.Reset(keep)
		}
		p.mu.Unlock()
		return nil
	}
	h.left = true
	p.client.left.Store(int64(now))
	if h.leaving != nil {
		h.leaving.Stop()
	}
	c, l := h.claim, h.claim.line
	c.drop(h)
	if len(c.holds) > 0 || h.lost == nil && l.pass(c, now) {
		p.mu.Unlock()
		p.client.unheld()
		return nil
	}
	l.drop(c)
	next := l.advance()
	trust := c.until(h.grace).Sub(now)
	lost := h.lost != nil || c.gone != nil
	p.mu.Unlock()
	defer p.client.unheld()
	if lost {
		p.giveBack(c, next)
		return nil
	}
	bounded := lazyctx.Within(context.Background(), min(max(trust, time.Millisecond), lastWord))
	defer bounded.Finish()
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
		started := p.client.clock.Now()
		g, wasHeld, err := r.Requeue(ctx, c.Claim, next.Claim)
		left := err
		if errors.Is(err, driver.ErrUnable) { // it has no room for next; to leave takes none
			wasHeld, left = s.driver.Release(ctx, c.Claim)
		}
		now := p.client.clock.Look()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.answer(next, false, started, now, g, err)
		p.silence.end()
		return p.departed(c, wasHeld, left)
	}
	wasHeld, err := s.driver.Release(ctx, c.Claim)
	p.mu.Lock()
	defer p.mu.Unlock()
	if next != nil {
		go p.errand(next.background(), next, 0)
	}
	return p.departed(c, wasHeld, err)
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
	p.silence.begin(p.client.clock.Now())
	return true
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
	p.answered(p.client.clock.Now())
	c.session.untrack(c)
	if !wasHeld {
		return lost(driver.ErrGone)
	}
	return nil
}

// discard gives c back to the store in the background: its outcome is unknown or nobody wants it any more.
func (p *pool) discard(c *claim) {
	s := c.session
	if s.over {
		return
	}
	release := func(ctx context.Context) error {
		p.mu.Lock()
		over := s.over
		p.mu.Unlock()
		if over {
			return nil
		}
		_, err := s.driver.Release(ctx, c.Claim)
		if errors.Is(err, driver.ErrSessionLost) {
			return nil
		}
		return err
	}
	done := func(certain bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		s.unwanted--
		if !certain && p.client.cleaner.ctx.Err() != nil {
			return // the client ends, and says that this is not confirmed
		}
		s.untrack(c)
	}
	s.unwanted++
	p.client.cleaner.clean(s.valid, release, done)
}
