package interlock

import (
	"slices"
	"time"
)

// hold is one turn of one goroutine with a claim: what it took from the line and gives back to it. Leases that
// re-entered share it. Guarded by pool.mu.
type hold struct {
	claim   *claim
	fence   uint64
	grace   time.Duration
	minHold time.Duration
	granted instant
	passed  bool // from another goroutine of this client

	sharers int  // leases on it, made or about to be
	used    bool // somebody had a lease on it: it was released or lost, and not only declined
	leases  []*lease
	single  [1]*lease // what leases is where there is one
	lost    error     // matches ErrLost, once it is lost
	left    bool
	maximum *time.Timer // its MaxHold
	leaving *time.Timer // its grace after a loss, or the rest of its MinHold
}

// until is the end of trust in this hold.
func (h *hold) until() instant { return h.claim.until(h.grace) }

func (h *hold) stop() {
	if h.maximum != nil {
		h.maximum.Stop()
	}
	if h.leaving != nil {
		h.leaving.Stop()
	}
}

// drop takes a claim out of those that are held here.
func (l *line) drop(c *claim) {
	if i := slices.Index(l.held, c); i >= 0 {
		l.held = slices.Delete(l.held, i, i+1)
	}
}
