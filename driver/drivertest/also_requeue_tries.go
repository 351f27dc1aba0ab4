package drivertest

import (
	"sync/atomic"
	"time"
)

const (
	requeuesTried = 20 // beside which another process tries
	triesBeside   = 40 // at least
)

// Another process tries without pause while a claim is requeued again and again: what old keeps out
// is kept out by next, and nobody gets in between.
func tryRequeueBesideTries(w *world, k kind) {
	a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
	name := w.name("requeue-tries-" + k.String())
	old := a.held(k.own(name))
	var tries atomic.Int32
	var over atomic.Bool
	w.together(
		func() {
			defer over.Store(true)
			for i := 0; i < requeuesTried || tries.Load() < triesBeside && i < manyTurns; i++ {
				next := queued(k.own(name))
				if g := a.requeue(old, next); !g.Held {
					w.fail("%s is not held after a Requeue of %s, which was held, and nobody waits: Requeue is one step, and another process tried meanwhile",
						w.trace.claim(next), w.trace.label(old.ID))
				}
				old = next
				w.sleep(time.Duration(w.intN(300)) * time.Microsecond) // so that the tries come at any time of it
			}
		},
		func() {
			for !over.Load() && w.ctx.Err() == nil {
				try := k.rival(name)
				if g := b.state(try); g.Held {
					w.fail("%s was let in while what keeps it out was requeued: Requeue is one step, and nothing comes between the old claim and the next",
						w.trace.claim(try))
				}
				tries.Add(1)
				w.sleep(20 * time.Microsecond) // in a bubble nothing else ends an instant
			}
		},
	)
	a.letGo(old)
	b.free(k, name, "after it was requeued while another process tried")
}
