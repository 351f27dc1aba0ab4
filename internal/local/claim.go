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

// claim is one place in the store's line. The mutex of its pool guards it.
type claim struct {
	driver.Claim
	line    *line
	session *keepalive.Session // nil before it was sent
	state   state
	alone   bool // never shared: its first holder has a MinHold, or leads

	acquired clock.Instant // start of the last answered Acquire
	known    clock.Instant // when that answer arrived
	granted  clock.Instant
	fence    uint64 // the lowest of the tokens of this grant
	passes   int    // how often it was passed on
	holds    []*Hold
	only     [1]*Hold       // what holds is where there is one
	gone     error          // why the store lost it, or will not keep it for longer; nil while it does
	inWay    *driver.Holder // when last asked

	ctx    context.Context //nolint:containedctx // of its asking and waiting in the background; nil before there is any
	cancel context.CancelFunc
	call   *lazyctx.Context // of its Acquire, in whatever goroutine
}

type state uint8

const (
	asking  state = iota // being sent, or about to be
	waiting              // in the store's line
	held
)

// background gives c a context for what is done for it outside of the goroutine that wants it.
func (c *claim) background() context.Context {
	if c.ctx == nil {
		c.ctx, c.cancel = context.WithCancel(context.Background())
	}
	return c.ctx
}

// stop ends what is done for c: its asking and waiting is over.
func (c *claim) stop() {
	if c.call != nil {
		c.call.End(context.Canceled)
	}
	if c.cancel != nil {
		c.cancel()
	}
}

// fits reports whether c was made for a waiter like w.
func (c *claim) fits(w *waiter) bool { return c.alike(w) && (c.Queue || w.Try) }

// alike reports whether w could hold c.
func (c *claim) alike(w *waiter) bool {
	return w != nil && c.Kind == w.Kind && c.Weight == w.Weight && c.Limit == w.Limit && c.Note == w.Note
}

// until is the end of trust in the claim, for a lease of this grace.
func (c *claim) until(grace time.Duration) clock.Instant {
	return c.session.Until(c.acquired, c.known).Add(-grace)
}

// fresh reports whether there is trust enough for a lease of this grace: one that has less than a
// grace left would be lost before anything could be done with it.
func (c *claim) fresh(grace time.Duration, now clock.Instant) bool {
	return c.until(grace).Sub(now) >= grace
}

// describe is a claim of this client as people see it.
func (c *claim) describe() *driver.Holder {
	p := c.line.host
	return &driver.Holder{
		PublicID: driver.PublicID(c.ID), Owner: p.Owner, Kind: c.Kind, Weight: c.Weight, Limit: c.Limit, Held: true,
		Note: c.Note, Since: p.Clock.Display(c.granted), Until: p.Clock.Display(c.until(0)), Fence: c.fence, Passes: c.Passes,
	}
}

// Check implements keepalive.Claim.
func (c *claim) Check(now clock.Instant) (left keepalive.Left) {
	for _, h := range c.holds {
		h.check(now)
		if h.lost != nil {
			continue
		}
		if end := h.until(); left.End == 0 || end.Before(left.End) {
			left.End = end
		}
		if n := len(h.leases); n > 0 {
			left.Leases += n
			if trust := c.until(h.grace); left.Trust == 0 || trust.Before(left.Trust) {
				left.Trust = trust
			}
		}
		for _, l := range h.leases {
			l.Watch()
		}
	}
	return left
}

// Gone implements keepalive.Claim. Holders lose it; waiters stand again at the end of the line,
// unless an operator rejected them, which the driver's Wait says.
func (c *claim) Gone(why error) {
	if c.gone == nil {
		c.gone = why
	}
	for _, h := range c.holds {
		h.lose(why)
	}
	l := c.line
	if l.standing != c || c.state != waiting || !c.session.Over() { // else Wait returns the reason, and knows it better
		return
	}
	l.standing = nil
	c.stop()
	l.settle()
}

// discard gives c back to the store in the background: its outcome is unknown or nobody wants it
// any more.
func (c *claim) discard() {
	if c.session != nil {
		c.session.Discard(c.Claim, func() { c.line.host.actions.tidy(c.line) })
	}
}

// forget says that c certainly does not stand in the store.
func (c *claim) forget() {
	if c.session != nil {
		c.session.Untrack(c.ID)
	}
}

func (c *claim) remove(h *Hold) {
	if i := slices.Index(c.holds, h); i >= 0 {
		c.holds = slices.Delete(c.holds, i, i+1)
	}
}

// forgo acts on what an error says of where c stands.
func (c *claim) forgo(err error) {
	switch s := c.session; {
	case s == nil:
	case errors.Is(err, driver.ErrSessionLost):
		s.End(err)
	case errors.Is(err, driver.ErrNotSent) || fault.Final(err):
		c.forget()
	default:
		c.discard()
	}
}
