package drivertest

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

var parallelLaw = Law{
	Name: "Also_Parallel",
	Says: "Claims of one session may be used concurrently, with Renew beside them: still never two holders of one name, and no " +
		"call stands behind the Wait of another claim. Run with -race.",
	try: func(w *world) { w.eachKind(tryBesideWait); w.eachKind(tryParallel) },
}

const (
	parallelTurns = 12
	whole         = 1000 // what a claim that cannot share adds to its name's counter; one that shares adds 1
)

// Two processes with four goroutines each, all on one session of their process, use three names; a
// counter per name tells two holders at once. Where the kind shares, half of the turns are of
// claims that do not.
func tryParallel(w *world, k kind) {
	var names []string
	for range 3 {
		names = append(names, w.name("parallel-"+k.String()))
	}
	inside := make([]atomic.Int32, len(names))
	var work []func()
	for _, process := range []string{"A", "B"} {
		a := w.actor(process)
		for g := range 4 {
			turn := func(i int) {
				at := (i + g) % len(names)
				alone := k.mate == nil || (i+g)%2 == 0
				of := k.rival
				if !alone {
					of = k.own
				}
				c := of(names[at])
				c.Queue = i%4 != 3
				c.Note = fmt.Sprintf("%s%d", process, g)
				if got := a.state(c); !got.Held {
					if !c.Queue {
						return
					}
					a.await(c, patience)
				}
				weighs := int32(1)
				if alone {
					weighs = whole
				}
				if n := inside[at].Add(weighs); n > whole {
					w.fail("two claims of %s are held at once, %s of %s is one of them", w.trace.name(c.Name), w.trace.label(c.ID), a.name)
				}
				w.sleep(50 * time.Microsecond)
				inside[at].Add(-weighs)
				a.letGo(c)
			}
			work = append(work, func() {
				for i := range parallelTurns {
					turn(i)
				}
			})
		}
		for range 2 { // beside each other, too
			work = append(work, func() {
				for range parallelTurns {
					during("while others were under way", func() { a.renew() })
				}
			})
		}
	}
	w.together(work...)
}

// While a Wait is under way its session's other claims come and go.
func tryBesideWait(w *world, k kind) {
	a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
	holds := a.held(k.rival(w.name("beside-" + k.String())))
	waits, other := b.queue(k.own(holds.Name)), k.own(w.name("beside-other-"+k.String()))
	told := w.start(func() { b.await(waits, patience) })
	w.sleep(5 * time.Millisecond)
	prompt := func(what string, call func(ctx context.Context) (bool, error)) {
		ctx, cancel := context.WithTimeout(w.ctx, w.atOnce())
		defer cancel()
		switch held, err := call(ctx); {
		case err != nil && ctx.Err() != nil:
			w.failLate("%s was not answered while a Wait of another claim of its session was under way: %s", what, w.trace.claim(other))
		case err != nil || !held:
			w.fail("%s of %s beside a Wait answered held=%v, error %v", what, w.trace.claim(other), held, err)
		}
	}
	prompt("Acquire", func(ctx context.Context) (bool, error) { g, err := b.tryAcquire(ctx, other); return g.Held, err })
	prompt("Release", func(ctx context.Context) (bool, error) { return b.tryRelease(ctx, other) })
	a.letGo(holds)
	told.wait()
	b.letGo(waits)
}
