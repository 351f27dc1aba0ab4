package drivertest

import (
	"fmt"
	"sync/atomic"
	"time"
)

var parallelLaw = Law{
	Name: "Also_Parallel",
	Says: "Claims of one session may be used concurrently, with Renew beside them: still never two holders of one name. Run with " +
		"-race.",
	try: tryParallel,
}

const parallelTurns = 12

// Two processes with four goroutines each, all on one session of their process, use three names; a counter per name
// tells two holders at once.
func tryParallel(w *world) {
	var names []string
	for range 3 {
		names = append(names, w.name("parallel"))
	}
	inside := make([]atomic.Int32, len(names))
	var work []func()
	for _, process := range []string{"A", "B"} {
		a := w.actor(process)
		for g := range 4 {
			turn := func(i int) {
				at := (i + g) % len(names)
				c := mutex(names[at])
				c.Queue = i%4 != 3
				c.Note = fmt.Sprintf("%s%d", process, g)
				if got := a.state(c); !got.Held {
					if !c.Queue {
						return
					}
					a.await(c, patience)
				}
				if inside[at].Add(1) != 1 {
					w.fail("two claims of %s are held at once, %s of %s is one of them", w.story.name(c.Name), w.story.label(c.ID), a.name)
				}
				w.sleep(50 * time.Microsecond)
				inside[at].Add(-1)
				a.letGo(c)
			}
			work = append(work, func() {
				for i := range parallelTurns {
					turn(i)
				}
			})
		}
		work = append(work, func() {
			for range parallelTurns {
				a.renew()
			}
		})
	}
	w.together(work...)
}
