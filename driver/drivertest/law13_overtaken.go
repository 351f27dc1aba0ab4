package drivertest

import "github.com/interlock-go/interlock/driver"

// An Acquire that is given up with any of its requests under way, and whose Release overtakes it.
func tryOvertaken(w *world, k kind) {
	if _, ok := w.h.(Straggler); !ok {
		w.lacks("Straggler", "what stays after an Acquire whose later request straggles in behind its Release")
		return
	}
	b := w.actor("B")
	var after []func()
	for _, busy := range []bool{false, true} {
		eachRequest(func(n int) (answered bool) {
			a := w.unrenewed("A", w.long())
			c := queued(k.own(w.name("overtaken-" + k.String())))
			var holds driver.Claim
			if busy {
				holds = b.held(k.rival(c.Name))
			}
			deliver := a.straggling(n)
			answered = a.briefly(a.acquiring(c)) == nil
			// A Release that waits for the answer to the Acquire, or stands behind it, is not
			// answered now.
			left := a.briefly(a.releasing(c)) == nil
			deliver()
			if !left {
				a.release(c)
			}
			after = append(after, func() {
				if busy {
					b.letGo(holds)
				}
				b.free(k, c.Name, "after its only other claim was released while a request of its Acquire was under way")
			})
			return answered
		})
	}
	w.sleep(straggle) // nobody touches the names before the requests have arrived
	for _, see := range after {
		see()
	}
}
