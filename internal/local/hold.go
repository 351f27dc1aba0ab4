package local

import (
	"log/slog"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
	"github.com/interlock-go/interlock/internal/fault"
	"github.com/interlock-go/interlock/internal/keepalive"
)

// A Lease is what users have of a hold. Its methods are called with the pool's mutex held, and take
// the lease's own inside of it.
type Lease interface {
	// End ends the lease for a reason, unless it has ended before: then it returns how.
	End(why error) (was error)

	// Watch looks after the lease from now on: whether its user drops it.
	Watch()
}

// Hold is what one goroutine was granted of a claim: what it took from the line and gives back to
// it. Leases that re-entered share it. The mutex of the pool guards it.
type Hold struct {
	Fence  uint64 // its token; never changes, as Passed
	Passed bool   // from another goroutine of this client

	claim   *claim
	grace   time.Duration
	minHold time.Duration
	maxHold time.Duration // 0 for none
	since   clock.Instant // when it was granted, and from its first lease on when that began

	sharers      int  // leases on it, made or about to be
	begun        bool // somebody has or had a lease on it
	used         bool // somebody had a lease on it: it was released or lost, and not only declined
	leases       []Lease
	single       [1]Lease      // what leases is where there is one
	lost         error         // matches ErrLost, once it is lost
	released     bool          // it has left its line
	maximum      clock.Instant // when its MaxHold ends its leases; Never before the first, and without one
	releaseTimer *time.Timer   // its grace after a loss, or the rest of its MinHold
}

// Begin puts a lease on the hold, which began at since, and reports whether the hold is good for
// one. Where the lease re-enters, the one that is there already has shown that. From the first
// lease on MinHold and MaxHold count: that of several names has the last of them only now.
func (h *Hold) Begin(l Lease, since clock.Instant) (good bool) {
	p := h.claim.line.host
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.leases == nil {
		h.leases = h.single[:0]
	}
	h.leases = append(h.leases, l)
	if !h.begun {
		h.begun, h.since = true, since
		if h.maxHold > 0 {
			h.maximum = since.Add(h.maxHold - h.grace)
			h.claim.session.Guard(h.until(), h.grace)
		}
	}
	good = h.sharers > 1 || h.lost == nil && h.claim.fresh(h.grace, since)
	if good && h.lost != nil {
		_ = l.End(h.lost)
	}
	return good
}

// Until returns the end of the hold as far as it is known: of its MaxHold or of trust.
func (h *Hold) Until() clock.Instant {
	p := h.claim.line.host
	p.mu.Lock()
	defer p.mu.Unlock()
	return h.until()
}

func (h *Hold) until() clock.Instant { return min(h.claim.until(h.grace), h.maximum) }

// Live returns the kind and the weight of the hold's claim, and whether somebody holds it still.
func (h *Hold) Live() (kind driver.Kind, weight int, live bool) {
	p := h.claim.line.host
	p.mu.Lock()
	defer p.mu.Unlock()
	return h.claim.Kind, h.claim.Weight, h.lost == nil && !h.released && h.sharers > 0
}

// Share keeps the hold from leaving until one more lease, which is about to be made, is on it. It
// reports false, and does nothing, where the hold is no longer live; and it names a choice that a
// lease cannot have which shares the hold: of r, of a TTL, unless that is 0, or of a session of its
// own.
func (h *Hold) Share(r *Request, ttl time.Duration, isolated, ownGrace bool) (refused string, live bool) {
	p := h.claim.line.host
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case h.lost != nil || h.released || h.sharers == 0:
		return "", false
	case ttl != 0 && ttl != p.ttl:
		return "TTL", true
	case isolated && !p.isolated:
		return "session (Isolated)", true
	case ownGrace && r.Grace != h.grace:
		return "Grace", true
	case r.MinHold > 0 && r.MinHold != h.minHold:
		return "MinHold", true
	case r.MaxHold > 0 && r.MaxHold != h.maxHold:
		return "MaxHold", true
	case r.Note != "" && r.Note != h.claim.Note:
		return "Note", true
	}
	h.sharers++
	return "", true
}

// Check ends the leases of a hold whose time is over although the trust timer has not come yet.
func (h *Hold) Check(now clock.Instant) {
	p := h.claim.line.host
	p.mu.Lock()
	defer p.mu.Unlock()
	h.check(now)
}

func (h *Hold) check(now clock.Instant) {
	switch {
	case h.lost != nil || h.released || now < h.until():
	case now >= h.maximum:
		h.lose(fault.ErrMaxHold)
	default:
		h.lose(h.claim.session.NotRenewed())
	}
}

// lose ends the leases of the hold, and takes it out of the line a grace later, or when its owner
// releases it: the next one gets in when the work has stopped, or the time in which it must.
func (h *Hold) lose(why error) {
	if h.releaseTimer != nil && h.sharers == 0 && h.claim.gone != nil {
		h.releaseTimer.Reset(0) // released, and there is nothing left to keep for its MinHold
	}
	if h.lost != nil || h.released {
		return
	}
	h.lost = fault.Lost(why)
	if h.releaseTimer != nil {
		return // released, and kept for its MinHold only
	}
	for _, l := range h.leases {
		h.used = true
		_ = l.End(h.lost)
	}
	c := h.claim
	c.line.host.Log(slog.LevelWarn, "interlock: lease lost", "name", c.Name, "fence", h.Fence, "reason", why)
	h.releaseTimer = c.line.host.actions.releaseAfter(h, h.grace) // or with the rest of its MinHold after that
}

// removeLease takes a lease off the hold, or one that was about to be made. It reports whether it
// was the last.
func (h *Hold) removeLease(l Lease) (last bool) {
	h.leases = slices.DeleteFunc(h.leases, func(other Lease) bool { return other == l })
	h.sharers--
	return h.sharers == 0
}

// keepForMinHold reports whether the hold stays for its MinHold, and sets the timer for the rest of
// that. A hold without a lease, because its Lock failed, is not kept.
func (h *Hold) keepForMinHold(now clock.Instant) bool {
	keep := h.minHold - now.Sub(h.since)
	if keep <= 0 || !h.used || h.claim.gone != nil {
		return false
	}
	keep = min(keep, keepalive.LongestSleep)
	if h.releaseTimer == nil {
		h.releaseTimer = h.claim.line.host.actions.releaseAfter(h, keep)
	} else {
		h.releaseTimer.Reset(keep)
	}
	return true
}
