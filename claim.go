package interlock

import (
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
	"github.com/interlock-go/interlock/internal/lazyctx"
)

// claim is one place in the store's line.
type claim struct {
	driver.Claim
	line    *line
	session *session // nil before it was sent
	state   state
	private bool // never shared: its first holder has a MinHold, or leads

	acquired clock.Instant // start of the last answered Acquire
	known    clock.Instant // when that answer arrived
	granted  clock.Instant
	fence    uint64 // the lowest of the tokens of this grant
	passes   int    // how often it was passed on
	holds    []*hold
	only     [1]*hold       // what holds is where there is one
	gone     error          // why the store lost it, or will not keep it for longer; nil while it does
	inWay    *driver.Holder // when last asked

	ctx    context.Context //nolint:containedctx // of its asking and waiting in the background; nil before there is any
	cancel context.CancelFunc

	sending *lazyctx.Context // of its Acquire, in whatever goroutine
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

// settled ends what is done for c: its asking and waiting is over.
func (c *claim) settled() {
	if c.sending != nil {
		c.sending.End(context.Canceled)
	}
	if c.cancel != nil {
		c.cancel()
	}
}

// fits reports whether c was made for a waiter like w.
func (c *claim) fits(w *waiter) bool { return c.alike(w) && (c.Queue || w.try) }

// alike reports whether w could hold c.
func (c *claim) alike(w *waiter) bool {
	return w != nil && c.Kind == w.kind && c.Weight == w.weight && c.Limit == w.limit && c.Note == w.note
}

// until is the end of trust in the claim, for a lease of this grace. A renewal counts if it began when the claim's Acquire
// had been answered: one that began earlier may have reached the store before the claim did, or passed over a claim of
// which the driver did not know yet whether it stands.
func (c *claim) until(grace time.Duration) clock.Instant {
	from := c.acquired
	if !c.session.renewed.Before(c.known) {
		from = c.session.renewed
	}
	return from.Add(c.session.valid - grace)
}

// describe is a claim of this client as people see it.
func (c *claim) describe() *driver.Holder {
	clk := c.line.pool.client.clock
	return &driver.Holder{
		PublicID: driver.PublicID(c.ID), Owner: c.line.pool.client.owner, Kind: c.Kind, Weight: c.Weight, Limit: c.Limit, Held: true,
		Note: c.Note, Since: clk.Display(c.granted), Until: clk.Display(c.until(0)), Fence: c.fence, Passes: c.Passes,
	}
}

// drop takes a hold off its claim.
func (c *claim) drop(h *hold) {
	if i := slices.Index(c.holds, h); i >= 0 {
		c.holds = slices.Delete(c.holds, i, i+1)
	}
}
