package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
	"github.com/interlock-go/interlock/internal/fault"
	"github.com/interlock-go/interlock/internal/keepalive"
	"github.com/interlock-go/interlock/internal/lazyctx"
)

// Release takes a lease off the hold, and the hold with its last one out of the line: the claim
// goes to the next goroutine here, or back to the store. It returns how the lease had ended before;
// ErrUncertain if the store has not confirmed that in time, and ErrLost if the store says that the
// claim was not held any more.
func (p *Pool) Release(h *Hold, l Lease, now clock.Instant) (was, err error) {
	p.mu.Lock() // once for all that is to be done: the goroutines that want the name meet here
	h.check(now)
	was = l.End(fault.ErrReleased)
	h.used = true
	var d departure
	if h.off(l) {
		d = p.vacate(h, now)
	}
	p.mu.Unlock()
	return was, p.carry(d)
}

// Decline takes a lease that nobody was given off the hold, or none yet.
func (p *Pool) Decline(h *Hold, l Lease) {
	now := p.Clock.Now()
	p.mu.Lock()
	var d departure
	if h.off(l) {
		d = p.vacate(h, now)
	}
	p.mu.Unlock()
	_ = p.carry(d)
}

// leaves is the timer of a hold that was lost, or is kept for its MinHold.
func (p *Pool) leaves(h *Hold) {
	now := p.Clock.Look() // the timers of Go stand still while the machine is suspended, and so would a MinHold
	p.mu.Lock()
	d := p.vacate(h, now)
	p.mu.Unlock()
	_ = p.carry(d)
}

// departure is what is left to be done, under no mutex, for a hold that has left the line.
type departure struct {
	hold  *Hold  // nil where there is nothing
	claim *claim // which goes back to the store; nil where others hold it
	next  *claim // which is to be asked for; nil where there is none
	trust time.Duration
}

// vacate takes the hold out of the line.
func (p *Pool) vacate(h *Hold, now clock.Instant) (d departure) {
	if h.left || h.kept(now) {
		return d
	}
	h.left = true
	if h.leaving != nil {
		h.leaving.Stop()
	}
	d.hold = h
	c, l := h.claim, h.claim.line
	p.Left.Store(int64(now))
	c.holds = slices.DeleteFunc(c.holds, func(other *Hold) bool { return other == h })
	if len(c.holds) > 0 || h.lost == nil && l.pass(c, now) {
		return d
	}
	l.held = slices.DeleteFunc(l.held, func(other *claim) bool { return other == c })
	d.next = l.advance()
	if h.lost != nil || c.gone != nil { // nobody waits for the answer
		c.discard()
		p.goAsk(d.next)
		p.tidy(l)
		return d
	}
	d.claim, d.trust = c, c.until(h.grace).Sub(now)
	return d
}

// carry gives the claim back to the store, and asks for the next, in one step where the store can.
func (p *Pool) carry(d departure) error {
	if d.hold == nil {
		return nil
	}
	defer p.Ended()
	if d.claim == nil {
		return nil
	}
	ctx := lazyctx.Within(context.Background(), min(max(d.trust, time.Millisecond), keepalive.LastWord))
	defer ctx.Finish()
	c := d.claim
	if r, ok := c.session.Driver.(driver.Requeuer); ok && d.next != nil && p.adopt(d.next, c.session) {
		return p.requeue(ctx, r, c, d.next)
	}
	wasHeld, err := c.session.Driver.Release(ctx, c.Claim)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.goAsk(d.next)
	return p.departed(c, wasHeld, err)
}

// goAsk has the next claim asked for, if there is one.
func (p *Pool) goAsk(next *claim) {
	if next != nil {
		p.ask(next, 0)
	}
}

// requeue releases c and stands again at the end of the store's line with next, in one step.
func (p *Pool) requeue(ctx context.Context, r driver.Requeuer, c, next *claim) error {
	started := p.Clock.Now()
	g, wasHeld, err := r.Requeue(ctx, c.Claim, next.Claim)
	left := err
	if errors.Is(err, driver.ErrUnable) { // it has no room for next; to leave takes none
		wasHeld, left = c.session.Driver.Release(ctx, c.Claim)
	}
	now := p.Clock.Look()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answered(next, false, started, now, g, err) {
		go p.await(next.background(), next) //nolint:contextcheck // it outlives ctx
	}
	p.silence.End()
	return p.departed(c, wasHeld, left)
}

// adopt makes next a claim of the session, if that lives and next is still wanted.
func (p *Pool) adopt(next *claim, s *keepalive.Session) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Over {
		return false
	}
	if _, err := p.join(next, s); err != nil {
		return false
	}
	p.silence.Begin(p.Clock.Now())
	return true
}

// departed acts on what became of the first release of c.
func (p *Pool) departed(c *claim, wasHeld bool, err error) error {
	defer p.tidy(c.line)
	switch {
	case errors.Is(err, driver.ErrSessionLost):
		c.session.End(err)
		return fault.Lost(err)
	case err != nil:
		c.discard()
		return fmt.Errorf("%w: %w", fault.ErrUncertain, err)
	}
	p.silence.Answered(p.Clock.Now())
	c.session.Untrack(c.ID)
	if !wasHeld {
		return fault.Lost(driver.ErrGone)
	}
	return nil
}
