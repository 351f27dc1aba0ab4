package drivertest

import "time"

var wakeUpLaw = Law{
	Name: "Law06_WakeUp",
	Says: "No wake-up is lost between Acquire and Wait: a claim that becomes held at any moment after it was put in line, " +
		"before, while or after Wait is called, is told by Wait without any expiry or renewal.",
	try: tryWakeUp,
}

const wakeUps = 60

// The sessions' time is far longer than the bound, so a waiter that is only found by renewal or expiry is too late.
func tryWakeUp(w *world) {
	a, b := w.still("A", w.long()), w.still("B", w.long())
	name := w.name("wake")
	c := a.held(mutex(name))
	for i := range wakeUps {
		next := b.queue(mutex(name))
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
	tryHerd(w)
}

// renewBoth keeps a store happy whose longest time is short, between rounds and never during one.
func (w *world) renewBoth(round int, actors ...*actor) {
	if round%10 == 9 {
		for _, a := range actors {
			a.renew()
		}
	}
}

// One release that lets in many wakes all of them.
func tryHerd(w *world) {
	if !w.traits.Shared {
		return
	}
	a := w.still("A", w.long())
	var readers []*actor
	for _, name := range []string{"R1", "R2", "R3", "R4"} {
		readers = append(readers, w.still(name, w.long()))
	}
	for range 5 {
		name := w.name("wake-all")
		c := a.held(write(name))
		var waits []func()
		for _, r := range readers {
			mine := r.queue(read(name))
			waits = append(waits, func() { r.await(mine, w.atOnce()); r.release(mine) })
		}
		w.together(append(waits, func() { a.letGo(c) })...)
	}
}
