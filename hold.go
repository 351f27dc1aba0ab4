package interlock

import (
	"slices"
	"time"

	"github.com/interlock-go/interlock/internal/clock"
)

// hold is one turn of one goroutine with a claim: what it took from the line and gives back to it. Leases that
// re-entered share it. Guarded by pool.mu.
type hold struct {
	claim   *claim
	fence   uint64
	grace   time.Duration
	minHold time.Duration
	maxHold time.Duration // 0 for none
	since   clock.Instant // when it was granted, and from its first lease on when that began
	passed  bool          // from another goroutine of this client

	sharers int  // leases on it, made or about to be
	begun   bool // somebody has or had a lease on it
	used    bool // somebody had a lease on it: it was released or lost, and not only declined
	leases  []*lease
	single  [1]*lease // what leases is where there is one
	lost    error     // matches ErrLost, once it is lost
	left    bool
	maximum clock.Instant // when its MaxHold ends its leases; 0 while it has none
	leaving *time.Timer   // its grace after a loss, or the rest of its MinHold
}

// begin has MinHold and MaxHold count from now on, when there is the first lease on the hold: that of several names has the
// last of them only now.
func (h *hold) begin(now clock.Instant) {
	if h.begun {
		return
	}
	h.begun, h.since = true, now
	if h.maxHold > 0 {
		h.maximum = now.Add(h.maxHold - h.grace)
		h.claim.session.guard(h)
	}
}

// until is the end of this hold as far as it is known: of its MaxHold or of trust.
func (h *hold) until() clock.Instant {
	trusted := h.claim.until(h.grace)
	if h.maximum != 0 {
		return min(trusted, h.maximum)
	}
	return trusted
}

// over is why the hold's time is over.
func (h *hold) over(now clock.Instant) error {
	if h.maximum != 0 && !now.Before(h.maximum) {
		return ErrMaxHold
	}
	return h.claim.session.notRenewed()
}

// drop takes a claim out of those that are held here.
func (l *line) drop(c *claim) {
	if i := slices.Index(l.held, c); i >= 0 {
		l.held = slices.Delete(l.held, i, i+1)
	}
}
