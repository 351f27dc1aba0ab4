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
	var d pendingRelease
	if h.removeLease(l) {
		d = p.releaseLocal(h, now)
	}
	p.mu.Unlock()
	return was, p.sendRelease(d)
}

// Decline takes a lease that nobody was given off the hold, or none yet.
func (p *Pool) Decline(h *Hold, l Lease) {
	now := p.Clock.Now()
	p.mu.Lock()
	var d pendingRelease
	if h.removeLease(l) {
		d = p.releaseLocal(h, now)
	}
	p.mu.Unlock()
	_ = p.sendRelease(d)
}

// onReleaseTimer is called when the grace after a loss, or the MinHold, is over.
func (p *Pool) onReleaseTimer(h *Hold) {
	now := p.Clock.NowSynced() // the timers of Go stand still while the machine is suspended, and so would a MinHold
	p.mu.Lock()
	d := p.releaseLocal(h, now)
	p.mu.Unlock()
	_ = p.sendRelease(d)
}

// pendingRelease is what sendRelease has to do, under no mutex, for a hold that has left the line.
type pendingRelease struct {
	hold  *Hold  // nil where there is nothing
	claim *claim // which goes back to the store; nil where others hold it
	next  *claim // which is to be asked for; nil where there is none
	trust time.Duration
}

// releaseLocal takes the hold out of the line, unless its MinHold keeps it. The claim is passed on,
// or stays for others that share it, or is in what is left to be done.
func (p *Pool) releaseLocal(h *Hold, now clock.Instant) (d pendingRelease) {
	if h.released || h.keepForMinHold(now) {
		return d
	}
	h.released = true
	if h.releaseTimer != nil {
		h.releaseTimer.Stop()
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
		c.releaseInBackground()
		p.acquireNext(d.next)
		p.removeIfIdle(l)
		return d
	}
	d.claim, d.trust = c, c.until(h.grace).Sub(now)
	return d
}

// sendRelease releases the claim at the store, and sends the next, in one step where the store can.
func (p *Pool) sendRelease(d pendingRelease) error {
	if d.hold == nil {
		return nil
	}
	defer p.Ended()
	if d.claim == nil {
		return nil
	}
	ctx := lazyctx.Within(context.Background(), min(max(d.trust, time.Millisecond), keepalive.ReleaseTimeout))
	defer ctx.Finish()
	c := d.claim
	if r, ok := c.session.Driver.(driver.Requeuer); ok && d.next != nil && p.joinNext(d.next, c.session) {
		return p.requeue(ctx, r, c, d.next)
	}
	wasHeld, err := c.session.Driver.Release(ctx, c.Claim)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acquireNext(d.next)
	return p.onReleased(c, wasHeld, err)
}

// acquireNext sends the next claim, if there is one, from a goroutine of its own.
func (p *Pool) acquireNext(next *claim) {
	if next != nil {
		p.acquireAfter(next, 0)
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
	now := p.Clock.NowSynced()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.onAnswer(next, false, started, now, g, err) {
		go p.waitRemote(next.background(), next) //nolint:contextcheck // it outlives ctx
	}
	p.silence.End()
	return p.onReleased(c, wasHeld, left)
}

// joinNext adds next to the session, and reports whether that lives and somebody waits for next.
func (p *Pool) joinNext(next *claim, s *keepalive.Session) bool {
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

// onReleased handles the result of the first release of c.
func (p *Pool) onReleased(c *claim, wasHeld bool, err error) error {
	defer p.removeIfIdle(c.line)
	switch {
	case errors.Is(err, driver.ErrSessionLost):
		c.session.End(err)
		return fault.Lost(err)
	case err != nil:
		c.releaseInBackground()
		return fmt.Errorf("%w: %w", fault.ErrUncertain, err)
	}
	p.silence.Answered(p.Clock.Now())
	c.session.Untrack(c.ID)
	if !wasHeld {
		return fault.Lost(driver.ErrGone)
	}
	return nil
}
