package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

var traitsLaw = Law{
	Name: "Also_Traits",
	Says: "Traits are promises: they are consistent, do not change, a time-to-live within their bounds is not refused, and one " +
		"outside them is clamped or refused, never taken for another one.",
	try: tryTraits,
}

func tryTraits(w *world) {
	t := w.traits
	switch {
	case t.MinTTL <= 0 || t.MaxTTL > 0 && t.MaxTTL < t.MinTTL:
		w.fail("the bounds of the TTL are %v and %v: want 0 < MinTTL ≤ MaxTTL", t.MinTTL, t.MaxTTL)
	case t.Grain < 0 || t.Notice < 0:
		w.fail("the grain is %v and the notice of death %v: want neither negative", t.Grain, t.Notice)
	case t.Single && t.Fence == driver.NoFence:
		w.fail("a grant is said to reserve a single token, and there are none")
	}
	w.actor("A").hold(mutex(w.name("traits")))
	if again := w.process("again").d.Traits(); again != t {
		w.fail("another driver on the same store has other traits: %s", describeTraits(again))
	}
	if again := w.processes[0].d.Traits(); again != t {
		w.fail("the traits have changed: %s", describeTraits(again))
	}
	p := w.process("bounds")
	tryBounds(w, p)
	outside := []time.Duration{t.MinTTL / 2, -time.Second, 0}
	if t.MaxTTL > 0 {
		outside = append(outside, 2*t.MaxTTL)
	}
	for _, ttl := range outside {
		from := time.Now()
		s, err := ask(w.ctx, w.trial, p.name, func(ctx context.Context) (driver.Session, error) {
			return p.d.Open(ctx, driver.Spec{ID: driver.NewID(), TTL: ttl})
		}, nil)
		if err != nil {
			w.trace.add(from, "bounds", "Open(TTL %v) → error: %s", ttl, w.trace.err(err))
			if !errors.Is(err, driver.ErrRefused) {
				w.fail("Open with a TTL of %v answered %v: want an error that matches ErrRefused, or a session with a TTL within bounds", ttl, err)
			}
			continue
		}
		valid := s.Valid()
		w.trace.add(from, "bounds", "Open(TTL %v) → valid %v", ttl, valid)
		if valid <= 0 || t.MaxTTL > 0 && valid > t.MaxTTL {
			w.fail("Open with a TTL of %v gave a session that is valid for %v: the bounds are %v and %v", ttl, valid, t.MinTTL, t.MaxTTL)
		}
	}
	for _, again := range []driver.Traits{w.processes[0].d.Traits(), p.d.Traits()} {
		if again != t {
			w.fail("the traits have changed from %s to %s", describeTraits(t), describeTraits(again))
		}
	}
}

// A time-to-live within the bounds is not refused. It may be clamped: Valid says what was given.
func tryBounds(w *world, p *process) {
	most := w.traits.MaxTTL
	if most == 0 {
		most = max(w.traits.MinTTL, 30*24*time.Hour) // there is no limit
	}
	for _, ttl := range []time.Duration{w.traits.MinTTL, most} {
		p.open("bounds", ttl).lapse()
	}
}
