package drivertest

import (
	"time"

	"github.com/interlock-go/interlock/driver"
)

var wakeUpLaw = Law{
	Name: "Law06_WakeUp",
	Says: "No wake-up is lost between Acquire and Wait: a claim that becomes held at any moment after it was put in line, " +
		"before, while or after Wait is called, is told by Wait without any expiry or renewal.",
	try: tryWakeUp,
}

const wakeUps = 60

// The sessions' time is far longer than the bound, so a waiter that is only found by renewal or
// expiry is too late.
func tryWakeUp(w *world) {
	w.eachKind(func(w *world, k kind) { tryHandoffs(w, k); tryHerd(w, k); tryTwoWaits(w, k) })
}

func tryHandoffs(w *world, k kind) {
	a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
	name := w.name("wake-" + k.String())
	c := a.held(k.own(name))
	for i := range wakeUps {
		of := k.rival // own and rival by turns
		if i%2 == 1 {
			of = k.own
		}
		next := b.queue(of(name))
		switch i % 3 {
		case 0: // the grant comes before Wait
			a.letGo(c)
			if i%2 == 0 {
				w.sleep(2 * time.Millisecond)
			}
			b.await(next, w.atOnce())
		default: // about at the same time, either of them first
			hold, look := time.Duration(0), time.Duration(0)
			if i%3 == 1 {
				hold = time.Duration(w.intN(300)) * time.Microsecond
			} else {
				look = time.Duration(w.intN(300)) * time.Microsecond
			}
			leaving := c
			w.together(
				func() { w.sleep(hold); a.letGo(leaving) },
				func() { w.sleep(look); b.await(next, w.atOnce()) },
			)
		}
		a, b, c = b, a, next
		w.renewBoth(i, a, b)
	}
	a.letGo(c)
}

// One release that lets in many wakes all of them.
func tryHerd(w *world, k kind) {
	if k.mate == nil {
		return
	}
	a := w.unrenewed("A", w.long())
	var readers []*actor
	for _, name := range []string{"R1", "R2", "R3", "R4"} {
		readers = append(readers, w.unrenewed(name, w.long()))
	}
	for range 5 {
		name := w.name("wake-all-" + k.String())
		c := a.held(k.rival(name))
		var waits []func()
		for _, r := range readers {
			mine := r.queue(k.mate(name))
			waits = append(waits, func() {
				r.awaitAfter(mine, w.atOnce(), "a release that lets in four")
				r.letGo(mine)
			})
		}
		w.together(append(waits, func() { a.letGo(c) })...)
	}
}

// Two Waits of one session are under way, and the second one's claim is let in first.
func tryTwoWaits(w *world, k kind) {
	a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
	var holds, waits []driver.Claim
	var told []*task
	for i := range 2 {
		holds = append(holds, a.held(k.rival(w.name("wake-two-"+k.String()))))
		waits = append(waits, b.queue(k.own(holds[i].Name)))
	}
	for i, within := range []time.Duration{2 * w.atOnce(), w.atOnce()} {
		told = append(told, w.start(func() { b.awaitAfter(waits[i], within, "its release, with two Waits of its session under way") }))
		w.sleep(5 * time.Millisecond)
	}
	for _, i := range []int{1, 0} {
		a.letGo(holds[i])
		told[i].wait()
		b.letGo(waits[i])
	}
}
