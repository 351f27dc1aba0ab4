package local

import (
	"context"
	"errors"
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

	answered bool          // the store has said that it stands
	acquired clock.Instant // start of the last answered Acquire
	known    clock.Instant // when that answer arrived
	granted  clock.Instant
	fence    uint64 // the lowest of the tokens of this grant
	passes   int    // how often it was passed on
	holds    []*Hold
	only     [1]*Hold       // what holds is where there is one
	gone     error          // why the store lost it, or will not keep it for longer; nil while it does
	blocker  *driver.Holder // the holder that it waits for, as of the last answer

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
	return w != nil && w.Mode == Mode{c.Kind, c.Weight, c.Limit, c.Note}
}

// until is the end of trust in the claim, for a lease of this grace. A renewal counts if it began
// when the claim's Acquire had been answered: one that began earlier may have reached the store
// before the claim did, or passed over a claim of which the driver did not know yet whether it
// stands.
func (c *claim) until(grace time.Duration) clock.Instant {
	from := c.acquired
	if c.session.Renewed >= c.known {
		from = c.session.Renewed
	}
	return from.Add(c.session.Valid) - clock.Instant(grace)
}

// fresh reports whether there is trust enough for a lease of this grace: one that has less than a
// grace left would be lost before anything could be done with it.
func (c *claim) fresh(grace time.Duration, now clock.Instant) bool {
	return c.until(2*grace) >= now
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
func (c *claim) Check(now clock.Instant) keepalive.Left {
	left := keepalive.Left{End: clock.Never, Trust: clock.Never}
	for _, h := range c.holds {
		h.check(now)
		if h.lost != nil {
			continue
		}
		left.End = min(left.End, h.until())
		if n := len(h.leases); n > 0 {
			left.Leases += n
			left.Trust = min(left.Trust, c.until(h.grace))
		}
		for _, l := range h.leases {
			l.Watch()
		}
	}
	return left
}

// Status implements keepalive.Claim.
func (c *claim) Status() (name string, answered bool) { return c.Name, c.answered }

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
	if l.pending != c || c.state != waiting || !c.session.Over { // else Wait returns the reason, and knows it better
		return
	}
	l.pending = nil
	c.stop()
	l.settle()
}

// releaseInBackground releases c without waiting for the answer, until there is one: its outcome is
// unknown, or nobody wants it any more.
func (c *claim) releaseInBackground() {
	if c.session != nil {
		c.session.ReleaseInBackground(c.Claim, func() { c.line.host.actions.removeIfIdle(c.line) })
	}
}

// cleanUpAfter releases c after a failed Acquire, unless err says that the store does not have it.
func (c *claim) cleanUpAfter(err error) {
	switch s := c.session; {
	case s == nil:
	case errors.Is(err, driver.ErrSessionLost):
		s.End(err)
	case errors.Is(err, driver.ErrNotSent) || fault.Final(err):
		s.Untrack(c.ID)
	default:
		c.releaseInBackground()
	}
}
