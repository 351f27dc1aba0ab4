package drivertest

import (
	"context"
	"time"
)

var idempotenceLaw = Law{
	Name: "Law02_Idempotence",
	Says: "Every call is idempotent by the claim's ID, after an error too: asked again, Acquire finds the claim where it " +
		"stands and answers the same state and token, one Release takes it out, and a Release of what is gone is no error.",
	try: tryIdempotence,
}

func tryIdempotence(w *world) {
	w.parts(
		func(w *world) { w.eachKind(tryAskingAgain) },
		func(w *world) { w.eachKind(tryPlaceKept) },
		tryAfterInterruption,
		func(w *world) { w.eachKind(tryAfterLostReplies) },
	)
}

func tryAskingAgain(w *world, k kind) {
	a, b := w.actor("A"), w.actor("B")
	name := w.name("again-" + k.String())
	c := k.own(name)
	first := a.hold(c)
	for range 3 {
		if again := a.state(c); !again.Held || again.Fence != first.Fence {
			w.fail("the same claim answered %s first and %s when asked again", w.trace.grant(first, nil), w.trace.grant(again, nil))
		}
	}
	b.denied(k.rival(name))
	a.letGo(c)
	theirs := b.held(k.rival(name)) // one Release takes out what was asked for four times
	if a.release(c) {
		w.fail("the second Release of %s said that it had been held", w.trace.label(c.ID))
	}
	if a.release(k.own(name)) {
		w.fail("the Release of a claim that was never there said that it had been held")
	}
	w.actor("C").denied(k.own(name)) // neither of them took out B's claim
	b.letGo(theirs)
}

// A waiter that asks again, or whose Wait ends, keeps its one place.
func tryPlaceKept(w *world, k kind) {
	a, b, c := w.actor("A"), w.actor("B"), w.actor("C")
	name := w.name("place-" + k.String())
	holds := a.held(k.rival(name))
	first, second := b.queue(k.own(name)), c.queue(k.rival(name))
	ctx, cancel := context.WithTimeout(w.ctx, 20*time.Millisecond)
	defer cancel()
	for ctx.Err() == nil {
		if g, err := b.tryWait(ctx, first); err == nil && g.Held {
			w.fail("Wait says that this %s is held while A holds the name: %s", k, w.trace.claim(first))
		}
	}
	if b.state(first).Held {
		w.fail("%s is held while A holds the name", w.trace.label(first.ID))
	}
	a.letGo(holds)
	if !w.traits.Ordered {
		w.together(
			func() { b.await(first, patience); b.letGo(first) },
			func() { c.await(second, patience); c.letGo(second) },
		)
		return
	}
	b.awaitAfter(first, w.atOnce(), "a Wait of it had ended and it was asked for again")
	if c.state(second).Held {
		w.fail("%s and %s are both held", w.trace.label(first.ID), w.trace.label(second.ID))
	}
	b.letGo(first)
	c.await(second, w.atOnce())
	c.letGo(second)
}

// A call whose context ends at any moment leaves a claim that can be asked for and released.
func tryAfterInterruption(w *world) {
	a, b := w.actor("A"), w.actor("B")
	ks := w.kinds()
	for i := range 40 {
		k := ks[i%len(ks)]
		name := w.name("interrupted")
		c := k.own(name)
		ctx, cancel := context.WithTimeout(w.ctx, time.Duration(w.intN(1+30*i))*time.Microsecond)
		g, err := a.tryAcquire(ctx, c)
		cancel()
		again := a.hold(c)
		if err == nil && !same(g, again) {
			w.fail("the same claim answered %s first and %s when asked again", w.trace.grant(g, nil), w.trace.grant(again, nil))
		}
		ctx, cancel = context.WithTimeout(w.ctx, time.Duration(w.intN(1+30*i))*time.Microsecond)
		_, _ = a.tryRelease(ctx, c) // whatever became of it
		cancel()
		a.release(c)
		b.letGo(b.held(k.rival(name)))
	}
}

// Requests whose replies were lost are asked again, both for a free claim and for one that waits.
func tryAfterLostReplies(w *world, k kind) {
	st, ok := w.h.(Staller)
	if !ok {
		w.lacks("Staller", "whether a claim survives a lost reply with the same token and one place")
		return
	}
	a, b, c := w.actor("A"), w.unrenewed("B", w.long()), w.actor("C")
	for _, way := range []Way{Replies, BothWays} {
		name := w.name("lost-reply-" + k.String())
		mine := queued(k.own(name))
		lose := func(what string, f func(context.Context) error) {
			heal := b.stalled(st, way)
			b.timesOut(what, f)
			heal()
		}
		lose("Acquire", b.acquiring(mine))
		first := b.hold(mine)
		if again := b.state(mine); again.Fence != first.Fence {
			w.fail("the same claim answered token %d first and %d when asked again", first.Fence, again.Fence)
		}
		a.denied(k.rival(name))
		lose("Release", b.releasing(mine))
		b.release(mine)
		holds := a.held(k.rival(name))

		waits := queued(k.own(name))
		lose("Acquire", b.acquiring(waits))
		b.queue(waits)
		behind := c.queue(k.rival(name))
		a.letGo(holds)
		w.together(
			func() { b.await(waits, patience); b.letGo(waits) },
			func() { c.await(behind, patience); c.letGo(behind) },
		)
		a.letGo(a.held(k.rival(name)))
	}
}
