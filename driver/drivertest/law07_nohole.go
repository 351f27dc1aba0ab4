package drivertest

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

var noHoleLaw = Law{
	Name: "Law07_NoHole",
	Says: "A waiter that gave up leaves no hole: after its Release the line goes on as if it had never been there, " +
		"also when its grant was on its way, and when it was the first behind a holder whose time runs out. A claim that was granted had been held, whether its owner has heard of it or not.",
	try: tryNoHole,
}

func tryNoHole(w *world) {
	w.apart(
		func() { w.eachKind(func(w *world, k kind) { tryGivingUp(w, k); tryUnnoticed(w, k) }) },
		func() { w.eachKind(tryGivingUpFirst) },
	)
	trySharersBehind(w)
}

func tryGivingUp(w *world, k kind) {
	a, b, c := w.unrenewed("A", w.long()), w.unrenewed("B", w.long()), w.unrenewed("C", w.long())
	actors := []*actor{a, b, c}
	for i := range 20 {
		name := w.name("hole-" + k.String())
		holds, gone, next := a.held(k.rival(name)), b.queue(k.own(name)), c.queue(k.rival(name))
		if i%2 == 0 { // gives up first
			b.cancelWait(gone, time.Duration(w.intN(500))*time.Microsecond)
			if b.release(gone) && w.traits.Ordered {
				w.fail("%s waited behind %s, and its Release said that it had been held", w.trace.label(gone.ID), w.trace.label(holds.ID))
			}
			a.letGo(holds)
		} else { // gives up while its grant is on its way
			w.together(
				func() { w.sleep(time.Duration(w.intN(200)) * time.Microsecond); a.letGo(holds) },
				func() {
					b.cancelWait(gone, time.Duration(w.intN(200))*time.Microsecond)
					b.release(gone)
				},
			)
		}
		c.await(next, w.atOnce())
		c.letGo(next)
		w.renewBoth(i, actors...)
	}
	// A session that is closed while it waits gives up all its waiters.
	name := w.name("hole-closed-" + k.String())
	holds := a.held(k.rival(name))
	d := w.unrenewed("D", w.long())
	d.queue(k.own(name))
	next := c.queue(k.rival(name))
	d.close()
	a.letGo(holds)
	c.await(next, w.atOnce())
	c.letGo(next)
}

// A claim that was granted and is released before its owner has asked was held until now. A store
// may be a moment late in granting.
func tryUnnoticed(w *world, k kind) {
	if !w.traits.Ordered {
		return
	}
	a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
	for late := time.Duration(0); ; late = 2*late + time.Millisecond {
		holds := a.held(k.rival(w.name("hole-unnoticed-" + k.String())))
		next := b.queue(k.own(holds.Name))
		a.letGo(holds)
		w.sleep(late)
		switch {
		case b.release(next):
			return
		case late > min(w.slack(), a.valid/4):
			w.failLate("%s stood behind %s, which was released, and its own Release %v later said that it had not been held",
				w.trace.claim(next), w.trace.label(holds.ID), late)
		}
	}
}

func trySharersBehind(w *world) {
	a, b, c := w.unrenewed("A", w.long()), w.unrenewed("B", w.long()), w.unrenewed("C", w.long())
	if w.traits.Shared && w.traits.Ordered { // the reader behind a writer that gave up holds beside the first reader
		name := w.name("hole-rw")
		holds, gone, next := a.held(read(name)), b.queue(write(name)), c.queue(read(name))
		b.cancelWait(gone, time.Millisecond)
		b.release(gone)
		c.await(next, w.atOnce())
		a.letGo(holds)
		c.letGo(next)
	}
	if w.traits.Counted && w.traits.Ordered {
		name := w.name("hole-permits")
		holds, gone, next := a.held(permit(name, 2, 3)), b.queue(permit(name, 2, 3)), c.queue(permit(name, 1, 3))
		b.cancelWait(gone, time.Millisecond)
		b.release(gone)
		c.await(next, w.atOnce())
		a.letGo(holds)
		c.letGo(next)
	}
}

// cancelWait calls Wait and ends it through its context after a time.
func (a *actor) cancelWait(c driver.Claim, after time.Duration) {
	ctx, cancel := context.WithTimeout(a.w.ctx, after)
	defer cancel()
	_, _ = a.tryWait(ctx, c) // is to be ended, and may be back before
}
