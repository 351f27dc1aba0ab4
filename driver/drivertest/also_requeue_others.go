package drivertest

import (
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// tryRequeueOthers tries what is not one holder and its like, with sessions that it opens once.
func tryRequeueOthers(w *world, k kind) {
	a, b, c := w.unrenewed("A", w.long()), w.unrenewed("B", w.long()), w.unrenewed("C", w.long())
	tryRequeueAgain(w, k, a, b)
	tryRequeueOfWaiter(w, k, a, b, c)
	tryRequeueWithoutQueue(w, k, a, b)
	tryRequeueToOther(w, k, a, b)
	tryRequeueOfBroken(w, k, a, b)
}

// Asked for again, as after an answer that was lost, the next claim is found where it stands, and
// the old one is not missed.
func tryRequeueAgain(w *world, k kind, a, b *actor) {
	again := func(old, next driver.Claim, first driver.Grant) {
		r, err := a.tryRequeue(w.ctx, old, next)
		if err != nil || !same(r.Grant, first) {
			w.fail("the same Requeue answered %s first and %s when asked again", w.trace.grant(first, nil), w.trace.answer(r.Grant, err))
		}
		if lost := a.renew().Lost; slices.ContainsFunc(lost, func(l driver.Loss) bool { return l.ID == old.ID }) {
			w.fail("Renew says that %s is lost, which was left by a Requeue", w.trace.label(old.ID))
		}
	}
	old := a.held(k.own(w.name("requeue-again-" + k.String())))
	next := queued(k.own(old.Name))
	again(old, next, a.requeue(old, next))
	if w.traits.Ordered {
		theirs, third := b.queue(k.rival(old.Name)), queued(k.own(old.Name))
		again(next, third, a.requeue(next, third))
		b.awaitAfter(theirs, w.atOnce(), "the same Requeue was asked for twice")
		b.letGo(theirs)
		a.await(third, w.atOnce())
		next = third
	}
	a.letGo(next)
	b.free(k, old.Name, "after the same Requeue was asked for twice and its next claim was released")
}

// A claim that waits leaves its place for one at the end.
func tryRequeueOfWaiter(w *world, k kind, a, b, c *actor) {
	if !w.traits.Ordered {
		return
	}
	holds := a.held(k.rival(w.name("requeue-waiter-" + k.String())))
	old, theirs := b.queue(k.own(holds.Name)), c.queue(k.rival(holds.Name))
	next := queued(k.own(holds.Name))
	r, err := b.tryRequeue(w.ctx, old, next)
	if err != nil || r.Held || r.held {
		w.fail("Requeue of %s, which waited, answered held=%v for it and %s for the next", w.trace.label(old.ID), r.held, w.trace.answer(r.Grant, err))
	}
	a.letGo(holds)
	c.awaitAfter(theirs, w.atOnce(), w.trace.label(old.ID)+", which waited before it, had been requeued")
	if b.state(next).Held {
		w.fail("%s and %s are both held", w.trace.label(next.ID), w.trace.label(theirs.ID))
	}
	c.letGo(theirs)
	b.await(next, w.atOnce())
	b.letGo(next)
	a.free(k, holds.Name, "after a claim that waited was requeued and the next one was released")
}

// A next claim that may not queue, and cannot be held since somebody waits, leaves nothing behind.
func tryRequeueWithoutQueue(w *world, k kind, a, b *actor) {
	if !w.traits.Ordered {
		return
	}
	old := a.held(k.own(w.name("requeue-try-" + k.String())))
	theirs := b.queue(k.rival(old.Name))
	try := k.own(old.Name)
	if g := a.requeue(old, try); g.Held {
		w.fail("%s is held after Requeue although %s waited", w.trace.claim(try), w.trace.claim(theirs))
	}
	b.await(theirs, w.atOnce())
	b.letGo(theirs)
	b.free(k, old.Name, "after a Requeue whose next claim could not be held and may not queue")
}

// The next claim has its own numbers, kind and note.
func tryRequeueToOther(w *world, k kind, a, b *actor) {
	x := &tokens{w: w, name: w.name("requeue-other-" + k.String()), claim: k.own}
	mine := x.own()
	mine.Note, mine.Passes = "the first", 3
	x.granted(a, mine, a.hold(mine))
	requeue := func(next driver.Claim, note string, passes int, also func(next driver.Claim)) {
		next.Queue, next.Note, next.Passes = true, note, passes
		g := a.requeue(mine, next)
		if !g.Held {
			w.fail("%s is alone in line and not held after Requeue", w.trace.claim(next))
		}
		if k.mate != nil {
			also(next)
		}
		x.granted(a, next, g)
		mine = next
		if look, ok := b.p.d.(driver.Inspector); ok {
			l, err := lookAt(w, look, x.name)
			switch {
			case errors.Is(err, errors.ErrUnsupported):
			case err != nil || len(l.Claims) != 1:
				w.fail("the line of %s, where one claim was requeued, has %d claims, error %v: want 1", w.trace.name(x.name), len(l.Claims), err)
			default:
				w.shows(l.Claims[0], a, next, true)
			}
		}
	}
	// A reader becomes a writer, and a small permit a large one.
	requeue(k.rival(x.name), "the second", 0, func(next driver.Claim) {
		if c := k.mate(x.name); b.state(c).Held {
			w.fail("%s was let in beside %s, which had taken the place of another %s by a Requeue", w.trace.claim(c), w.trace.claim(next), k)
		}
	})
	requeue(k.own(x.name), "", 7, func(driver.Claim) { b.letGo(b.held(k.mate(x.name))) })
	a.letGo(mine)
	b.free(k, x.name, "after it was requeued as another one and back and released")
}

// What is broken is left like what is gone.
func tryRequeueOfBroken(w *world, k kind, a, b *actor) {
	br, _ := breakerOf(w, b.p.d)
	if br == nil {
		return // Law15_Break says so
	}
	for _, now := range []bool{false, true} {
		old := k.own(w.name("requeue-broken-" + k.String()))
		br.hits(old, a.hold(old), now)
		next := queued(k.own(old.Name))
		r, err := a.tryRequeue(w.ctx, old, next)
		if err != nil || !r.Held || r.held {
			w.fail("Requeue of %s, which was broken, answered held=%v for it and %s for the next: want that only the next is held",
				w.trace.label(old.ID), r.held, w.trace.answer(r.Grant, err))
		}
		b.denied(k.rival(old.Name))
		a.letGo(next)
		b.free(k, old.Name, "after a claim that was broken was requeued and the next one was released")
	}
}

// A Requeue that is answered is worth its time also in a session that nobody has renewed for longer
// than that, as an Acquire is.
func tryRequeueLate(w *world, k kind) {
	if !w.traits.Expires {
		return
	}
	a, b := w.unrenewed("P", w.ttl), w.actor("Q")
	old := a.held(k.own(w.name("requeue-unrenewed-" + k.String())))
	a.lapse()
	w.sleep(a.valid * 3 / 2)
	next, rival := queued(k.own(old.Name)), k.rival(old.Name)
	started := time.Now()
	r, err := a.tryRequeue(w.ctx, old, next)
	if errors.Is(err, driver.ErrSessionLost) {
		b.letGo(b.held(rival)) // it stands nowhere
		return
	}
	if err != nil || !r.Held {
		w.fail("in a session that nobody had renewed for %v Requeue to %s, which is free, answered %s: want held, or an error that matches ErrSessionLost",
			a.valid*3/2, w.trace.claim(next), w.trace.answer(r.Grant, err))
	}
	if b.state(rival).Held {
		if time.Since(started) >= a.valid {
			w.tooSlow("the claim's time was over when its rival came")
		}
		w.fail("in a session that nobody had renewed for %v %s was requeued and answered held, and its rival %s was let in at once",
			a.valid*3/2, w.trace.claim(next), w.trace.claim(rival))
	}
	if !a.release(next) {
		if time.Since(started) >= a.valid {
			w.tooSlow("the claim's time was over when it was released")
		}
		w.fail("in a session that nobody had renewed for %v %s was requeued and answered held, and its Release said that it had not been",
			a.valid*3/2, w.trace.claim(next))
	}
	b.letGo(b.held(rival))
}
