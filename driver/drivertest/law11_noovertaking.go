package drivertest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

var noOvertakingLaw = Law{
	Name: "Law11_NoOvertaking",
	Says: "Where claims are granted in order, nobody overtakes: neither a later claim nor a try, also not in the moment of a " +
		"handoff. A store that promises no order must be seen to reorder, or to let a reader pass a writer that waits.",
	try: tryNoOvertaking,
}

func tryNoOvertaking(w *world) {
	if !w.traits.Ordered {
		tryReorders(w)
		return
	}
	w.eachKind(func(w *world, k kind) {
		if k.Kind != driver.Read { // readers are let in together, and their rival is a write
			tryOrder(w, k)
			tryTriesAtHandoff(w, k)
		}
	})
	if w.traits.Shared {
		a, b, c := w.actor("A"), w.actor("B"), w.actor("C")
		name := w.name("try-rw")
		first, waits := a.held(read(name)), b.queue(write(name))
		c.denied(read(name)) // it would fit beside the holder, but a writer waits
		a.letGo(first)
		b.await(waits, patience)
		b.letGo(waits)
	}
	if w.traits.Counted {
		a, b, c := w.actor("A"), w.actor("B"), w.actor("C")
		name := w.name("try-permits")
		first, waits := a.held(permit(name, 2, 3)), b.queue(permit(name, 2, 3))
		c.denied(permit(name, 1, 3))
		a.letGo(first)
		b.await(waits, patience)
		b.letGo(waits)
	}
}

// grantOrder lets each of n processes stand in line and returns the order in which they came to
// hold.
func grantOrder(w *world, k kind, actors []*actor, holder *actor) []int {
	name := w.name("order-" + k.String())
	first := holder.held(k.rival(name))
	var (
		mu    sync.Mutex
		order []int
		tasks []*task
	)
	for i, x := range actors {
		c := x.queue(k.rival(name))
		tasks = append(tasks, w.start(func() {
			x.await(c, patience)
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			x.letGo(c)
		}))
	}
	w.sleep(2 * time.Millisecond)
	holder.letGo(first)
	waitForAll(tasks, sooner)
	return order
}

func fleet(w *world) (actors []*actor, holder *actor) {
	for i := range 4 {
		actors = append(actors, w.actor(fmt.Sprintf("W%d", i+1)))
	}
	return actors, w.actor("H")
}

func tryOrder(w *world, k kind) {
	actors, holder := fleet(w)
	for range 5 {
		if order := grantOrder(w, k, actors, holder); !slices.IsSorted(order) {
			w.fail("W1, W2, W3 and W4 came in this order for a %s, and were granted in the order %v (counted from 0)", k, order)
		}
	}
}

const reorderRounds = 60

// tryReorders looks first whether a reader passes a writer that waits.
func tryReorders(w *world) {
	actors, holder := fleet(w)
	if w.traits.Shared {
		name := w.name("passes")
		first, waits, passes := holder.held(read(name)), actors[0].queue(write(name)), read(name)
		g := actors[1].state(passes)
		for a, c := range map[*actor]driver.Claim{holder: first, actors[0]: waits, actors[1]: passes} {
			a.release(c)
		}
		if g.Held {
			return
		}
	}
	for range reorderRounds {
		if !slices.IsSorted(grantOrder(w, w.kinds()[0], actors, holder)) {
			return
		}
	}
	w.fail("%d lines of four waiters were all granted in the order in which they came: then Traits.Ordered should be true", reorderRounds)
}

// While a claim waits, tries that rain down in the moment of the handoff all fail.
func tryTriesAtHandoff(w *world, k kind) {
	a, b, c := w.actor("A"), w.actor("B"), w.actor("C")
	name := w.name("try-" + k.String())
	mine := a.held(k.rival(name))
	for range 30 {
		next := b.queue(k.rival(name))
		c.denied(k.own(name))
		stop := make(chan struct{})
		tries := w.start(func() {
			for pause := 20 * time.Microsecond; ; pause = min(pause*21/20, time.Millisecond) { // densest at the handoff
				select {
				case <-stop:
					return
				default:
				}
				try := k.own(name)
				if g := c.state(try); g.Held {
					c.release(try)
					w.fail("%s was given %s while %s stood in line", c.name, w.trace.claim(try), w.trace.claim(next))
				}
				w.sleep(pause)
			}
		})
		w.sleep(time.Duration(w.intN(100)) * time.Microsecond)
		a.letGo(mine)
		g := caught(func() { b.await(next, w.atOnce()) })
		close(stop)
		tries.wait()
		if g != nil {
			panic(g)
		}
		a, b, mine = b, a, next
	}
	a.letGo(mine)
}
