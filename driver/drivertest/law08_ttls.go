package drivertest

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The time of a claim is what Valid says, whatever time was asked for.

// odd is a time-to-live that is no whole number of anything.
func (w *world) odd() time.Duration { return w.clamp(w.ttl * 137 / 100) }

// The shortest time-to-live is kept, where it is short, as far as the store answers within it.
func tryShortestTTL(w *world, k kind) {
	ttl := w.traits.MinTTL
	if ttl >= w.ttl {
		return
	}
	p, b := w.process("P"), w.actor("Q")
	a := &actor{w: w.trial, p: p, name: "P"}
	a.lapse()
	from := time.Now()
	s, err := call(w.ctx, a, func(ctx context.Context) (driver.Session, error) {
		return p.d.Open(ctx, driver.Spec{ID: driver.NewID(), TTL: ttl})
	}, nil)
	if err != nil {
		w.trace.add(from, "P", "Open(TTL %v) → error: %s", ttl, w.trace.err(err))
		return // Also_Traits says whether it may be refused
	}
	a.s, a.valid = s, s.Valid()
	defer func() { _ = s.Close(w.ctx) }() // in so short a time a store may not answer, and that proves nothing
	w.trace.add(from, "P", "Open(TTL %v) → valid %v", ttl, a.valid)
	mine := k.own(w.name("expiry-shortest-" + k.String()))
	next := queued(k.rival(mine.Name))
	started := time.Now()
	if g, err := a.tryAcquire(w.ctx, mine); err != nil || !g.Held {
		return // its time was over before
	}
	if !b.state(next).Held {
		a.lettingIn(mine, b, next, started)
	} else if early := time.Until(started.Add(a.valid)); early > 0 {
		w.fail("%s was let in %v before the time of %s was over: that is %v from the start of its Acquire", w.trace.claim(next), early, w.trace.claim(mine), a.valid)
	}
	b.letGo(next)
}
