package drivertest

import "github.com/interlock-go/interlock/driver"

var numbersLaw = Law{
	Name: "Also_Numbers",
	Says: "Weights and limits count exactly up to All, also where they add up to more, and as many share a name as the rule lets in.",
	try:  tryNumbers,
}

func tryNumbers(w *world) {
	w.eachKind(tryManySharers)
	if w.traits.Counted {
		tryLargePermits(w)
		trySumsBeyondAll(w)
	}
}

// Many claims hold one name together. One that needs all of it is let in when the last of them has
// left.
func tryManySharers(w *world, k kind) {
	if k.mate == nil {
		return
	}
	share := k.mate
	if k.Kind == driver.Permit {
		share = func(name string) driver.Claim { return permit(name, 1, manyAtOnce+1) }
	}
	a, b, c := w.unrenewed("A", w.long()), w.unrenewed("B", w.long()), w.unrenewed("C", w.long())
	name := w.name("many-" + k.String())
	for i := range manyAtOnce {
		if mine := share(name); !a.state(mine).Held {
			w.fail("%s, number %d, was not let in beside the others, for whom the rule leaves room: %s", k, i+1, w.trace.claim(mine))
		}
	}
	last := b.held(share(name))
	next := c.queue(k.rival(name))
	a.close()
	if c.state(next).Held {
		w.fail("%s holds beside the last of %d that shared the name", w.trace.claim(next), manyAtOnce+1)
	}
	b.letGo(last)
	c.await(next, w.atOnce())
	c.letGo(next)
}

// Numbers are kept whole, wherever a narrower one would end.
func tryLargePermits(w *world) {
	a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
	for _, limit := range []int{100, 200, 20_000, 50_000, 100_000, 1 << 24, driver.All} {
		name := w.name("large")
		two := []driver.Claim{permit(name, limit-limit/3, limit), permit(name, limit/3, limit)}
		for _, c := range two {
			a.hold(c)
		}
		b.denied(permit(name, 1, limit))
		a.letGo(two[1])
		b.denied(permit(name, limit/3+1, limit))
		b.letGo(b.held(permit(name, limit/3, limit)))
		a.letGo(two[0])
	}
}

// Weights that add up to more than All are still too many.
func trySumsBeyondAll(w *world) {
	a, b, c := w.unrenewed("A", w.long()), w.unrenewed("B", w.long()), w.unrenewed("C", w.long())
	name := w.name("sums")
	all := func() driver.Claim { return permit(name, driver.All, driver.All) }
	first, second, third := a.held(all()), b.queue(all()), c.queue(all()) // two and three of them
	a.denied(all())
	a.letGo(first)
	w.together(
		func() { b.await(second, patience); b.letGo(second) },
		func() { c.await(third, patience); c.letGo(third) },
	)
}
