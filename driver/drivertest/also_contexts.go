package drivertest

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

var contextsLaw = Law{
	Name: "Also_Contexts",
	Says: "Each call returns promptly when its own context ends, on a stalled wire and beside another call too, and a Wait that " +
		"was ended leaves the claim in its place.",
	try: func(w *world) {
		w.eachKind(tryContexts)
		if st, ok := w.h.(Staller); ok {
			tryStalledClose(w, st)
		}
	},
}

func tryContexts(w *world, k kind) {
	a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
	holds := a.held(k.rival(w.name("contexts-" + k.String())))
	waits := b.queue(k.own(holds.Name))
	for _, after := range []time.Duration{0, time.Millisecond, 30 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(w.ctx, after)
		for n := 0; ctx.Err() == nil; n++ { // an early return is allowed
			if g, err := b.tryWait(ctx, waits); err == nil && g.Held {
				w.fail("%s is told to be held while %s holds", w.trace.label(waits.ID), w.trace.label(holds.ID))
			}
			if n > manyTurns {
				w.fail("Wait came back %d times with nothing new: it spins instead of waiting", n)
			}
		}
		cancel()
	}
	st, ok := w.h.(Staller)
	if !ok {
		w.lacks("Staller", "whether calls return when their contexts end on a stalled wire")
	} else {
		for _, way := range []Way{BothWays, Replies} {
			tryStalledCalls(w, st, k, b, way)
			a.renew()
			b.renew()
		}
		tryBesideStalled(w, st, b, waits)
	}
	a.letGo(holds)
	b.await(waits, w.atOnce())
	b.letGo(waits)
}

// tryStalledCalls makes every call once on a stalled wire; call insists that each is back in time.
func tryStalledCalls(w *world, st Staller, k kind, b *actor, way Way) {
	heal := b.stalled(st, way)
	other := k.own(w.name("contexts-other"))
	for _, c := range []struct {
		what string
		f    func(context.Context) error
	}{
		{"Acquire", func(ctx context.Context) error { _, err := b.s.Acquire(ctx, other); return err }},
		{"Release", func(ctx context.Context) error { _, err := b.s.Release(ctx, other); return err }},
		{"Renew", func(ctx context.Context) error { _, err := b.s.Renew(ctx); return err }},
		{"Open", func(ctx context.Context) error {
			_, err := b.p.d.Open(ctx, driver.Spec{ID: driver.NewID(), TTL: w.ttl})
			return err
		}},
	} {
		b.timesOut(c.what, func(ctx context.Context) error {
			_, err := call(ctx, b, func(ctx context.Context) (struct{}, error) { return struct{}{}, c.f(ctx) },
				func(_ struct{}, err error) string { return c.what + " on the stalled wire → " + w.trace.err(err) })
			return err
		})
	}
	heal()
	b.release(other)
}

// tryBesideStalled makes calls beside a Renew that is not answered: each is back when its own
// context ends.
func tryBesideStalled(w *world, st Staller, b *actor, waits driver.Claim) {
	other := mutex(w.name("contexts-beside"))
	heal := b.stalled(st, BothWays)
	defer heal()
	renew := w.start(func() { _, _ = call(w.ctx, b, b.s.Renew, nil) }) // whatever became of it
	w.sleep(5 * time.Millisecond)
	during("beside a Renew that is not answered", func() {
		b.timesOut("Acquire", b.acquiring(other))
		ctx, cancel := context.WithTimeout(w.ctx, time.Millisecond)
		defer cancel()
		_, _ = b.tryWait(ctx, waits) // all that counts is that it is back
	})
	heal()
	renew.wait()
	b.release(other)
	b.renew()
}

// tryStalledClose closes a session on a stalled wire.
func tryStalledClose(w *world, st Staller) {
	c := w.unrenewed("C", w.long())
	c.hold(mutex(w.name("contexts-closing")))
	c.lapse()
	heal := c.stalled(st, BothWays)
	defer heal()
	c.timesOut("Close", func(ctx context.Context) error {
		_, err := call(ctx, c, func(ctx context.Context) (struct{}, error) { return struct{}{}, c.s.Close(ctx) },
			func(_ struct{}, err error) string { return "Close on the stalled wire → " + w.trace.err(err) })
		return err
	})
}
