package drivertest

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

var requeueLaw = Law{
	Name: "Also_Requeue",
	Says: "Requeue leaves the line and stands at its end in one step: whoever waits is let in, and else nobody; alone the next " +
		"claim is held at once with a new token and renewed, and after an error both claims can be released. The next claim is what it says and " +
		"nothing of the old one, which may also have waited, or be broken or gone.",
	try: tryRequeue,
}

func tryRequeue(w *world) {
	a := w.unrenewed("A", w.long())
	if _, ok := a.s.(driver.Requeuer); !ok {
		w.without("Requeue", "it is no driver.Requeuer: the core calls Release and then Acquire")
		return
	}
	w.eachKind(func(w *world, k kind) {
		w.apart(
			func() {
				tryRequeueAlone(w, k)
				tryRequeueBehind(w, k)
				tryRequeueOthers(w, k)
				tryRequeueInterrupted(w, k)
				tryRequeueBesideTries(w, k)
			},
			func() { tryRequeueRenews(w, k) }, // which takes its time
			func() { tryRequeueLate(w, k) },
		)
	})
}

// Alone it is held at once, anew.
func tryRequeueAlone(w *world, k kind) {
	a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
	x := &tokens{w: w, name: w.name("requeue-" + k.String()), claim: k.own}
	mine := x.own()
	x.granted(a, mine, a.hold(mine))
	for range 3 {
		next := queued(x.own())
		g := a.requeue(mine, next)
		if !g.Held {
			w.fail("%s is alone in line and not held after Requeue", w.trace.claim(next))
		}
		x.granted(a, next, g)
		if a.release(mine) {
			w.fail("%s was requeued, and its Release said that it had still been held", w.trace.label(mine.ID))
		}
		b.denied(k.rival(x.name))
		mine = next
	}
	// What was there no more is said not to have been held, and the next claim stands all the same.
	a.letGo(mine)
	next := queued(x.own())
	r, err := a.tryRequeue(w.ctx, mine, next)
	if err != nil || !r.Held || r.held {
		w.fail("Requeue of %s, which had been released, answered held=%v for it and %s for the next", w.trace.label(mine.ID), r.held, w.trace.answer(r.Grant, err))
	}
	a.letGo(next)
}

// With others in line the next is let in at once and the requeued claim stands behind the last.
func tryRequeueBehind(w *world, k kind) {
	if !w.traits.Ordered {
		return
	}
	a, b, c := w.unrenewed("A", w.long()), w.unrenewed("B", w.long()), w.unrenewed("C", w.long())
	x := &tokens{w: w, name: w.name("requeue-behind-" + k.String()), claim: k.rival}
	mine := x.own()
	x.granted(a, mine, a.hold(mine))
	second, third := b.queue(x.own()), c.queue(x.own())
	for range 6 {
		next := queued(x.own())
		if g := a.requeue(mine, next); g.Held {
			w.fail("%s is held after Requeue although %s waits", w.trace.claim(next), w.trace.claim(second))
		}
		x.granted(b, second, b.await(second, w.atOnce()))
		if c.state(third).Held || a.state(next).Held {
			w.fail("more than %s is held", w.trace.claim(second))
		}
		a, b, c, mine, second, third = b, c, a, second, third, next
	}
	a.letGo(mine)
	x.granted(b, second, b.await(second, w.atOnce()))
	b.letGo(second)
	x.granted(c, third, c.await(third, w.atOnce()))
	c.letGo(third)
}

// Whenever a Requeue is cancelled or times out, releasing both leaves nothing.
func tryRequeueInterrupted(w *world, k kind) {
	a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
	for i := range 30 {
		old := a.held(k.own(w.name("requeue-cancelled")))
		next := queued(k.own(old.Name))
		ctx, cancel := context.WithTimeout(w.ctx, time.Duration(w.intN(1+20*i))*time.Microsecond)
		_, _ = a.tryRequeue(ctx, old, next) // whatever became of it
		cancel()
		a.release(old)
		a.release(next)
		b.free(k, old.Name, "after a Requeue was cancelled and both claims were released")
	}
	st, ok := w.h.(Staller)
	if !ok {
		return
	}
	for _, way := range []Way{BothWays, Replies} {
		old := a.held(k.own(w.name("requeue-lost")))
		next := queued(k.own(old.Name))
		heal := a.stalled(st, way)
		a.timesOut("Requeue", a.requeuing(old, next))
		heal()
		a.release(old)
		a.release(next)
		b.free(k, old.Name, "after a Requeue timed out and both claims were released")
	}
}

// A Requeue that was answered renews the next claim, as an Acquire does.
func tryRequeueRenews(w *world, k kind) {
	if !w.traits.Expires {
		return
	}
	a, b := w.unrenewed("E", w.ttl), w.actor("F")
	old := a.held(k.own(w.name("requeue-renews")))
	w.sleep(a.valid * 6 / 10)
	started := time.Now()
	next := queued(k.own(old.Name))
	r, err := a.tryRequeue(w.ctx, old, next)
	if err != nil || !r.Held {
		if time.Since(a.asked) >= a.valid {
			w.tooSlow("the claim's time was over when it was requeued")
		}
		w.fail("within its time Requeue of %s answered %s", w.trace.label(old.ID), w.trace.answer(r.Grant, err))
	}
	behind := b.queue(k.rival(old.Name))
	a.lettingIn(next, b, behind, started)
	b.letGo(behind)
}
