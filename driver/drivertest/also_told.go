package drivertest

import (
	"time"

	"github.com/interlock-go/interlock/driver"
)

var toldLaw = Law{
	Name: "Also_Told",
	Says: "Whatever lets a claim in, its Wait under way is told of it: a Release, a Close, a Requeue or a Break with now of what is " +
		"held, the Release or the Break of a claim that waits ahead. Of several Waits of one session or process each is told, and a Wait " +
		"of what is held answers the same at once, any number of times.",
	try: tryTold,
}

// All sessions are of long life, and nobody renews them: what is told is told by what let the claim
// in.
func tryTold(w *world) {
	op := w.operator()
	w.eachKind(func(w *world, k kind) {
		tryToldHeld(w, k)
		tryToldOfLeaving(w, op, k)
		tryToldOfGivingUp(w, op, k)
		tryToldEach(w, k)
	})
}

// tellsWithin bounds what is to be told at once. A waiter that polls may ask a little later.
func (w *world) tellsWithin(c driver.Claim) time.Duration {
	if !w.traits.Events.Has(c.Kind) {
		return w.atOnce()
	}
	return min(w.atOnce(), second/2+w.slack())
}

// waitsAgain insists that Wait answers g for c, which is known to be held.
func (a *actor) waitsAgain(c driver.Claim, g driver.Grant, after string) {
	if again := a.awaitAfter(c, a.w.atOnce(), after); !same(again, g) {
		a.w.fail("%s is held with %s, and Wait answers %s after %s", a.w.trace.claim(c), a.w.trace.grant(g, nil), a.w.trace.grant(again, nil), after)
	}
}

// What Acquire answered as held, Wait does, too.
func tryToldHeld(w *world, k kind) {
	a := w.unrenewed("A", w.long())
	mine := queued(k.own(w.name("told-held-" + k.String())))
	g := a.hold(mine)
	a.waitsAgain(mine, g, "Acquire had said so")
	a.waitsAgain(mine, g, "a Wait had said so")
	a.letGo(mine)
}

// leaving is a way in which a claim that is held leaves the line.
type leaving struct {
	what string
	do   func(a *actor, c driver.Claim, g driver.Grant)
}

func (w *world) leavings(op *breaker, k kind) []leaving {
	ways := []leaving{
		{"the Release", func(a *actor, c driver.Claim, _ driver.Grant) { a.letGo(c) }},
		{"the Close of the session", func(a *actor, _ driver.Claim, _ driver.Grant) { a.close() }},
	}
	if op != nil {
		ways = append(ways, leaving{"the Break with now", func(_ *actor, c driver.Claim, g driver.Grant) { op.hits(c, g, true) }})
	}
	if !w.traits.Ordered {
		return ways // the requeued claim may be let in before the one that waits
	}
	return append(ways, leaving{"the Requeue", func(a *actor, c driver.Claim, _ driver.Grant) {
		if _, ok := a.s.(driver.Requeuer); !ok {
			a.letGo(c)
			return
		}
		again := queued(k.rival(c.Name))
		if a.requeue(c, again).Held {
			a.w.fail("%s is held after Requeue although another claim waits", a.w.trace.claim(again))
		}
	}})
}

// One claim holds, another one waits: own and rival by turns.
func tryToldOfLeaving(w *world, op *breaker, k kind) {
	p, b := w.process("A"), w.unrenewed("B", w.long())
	for _, way := range w.leavings(op, k) {
		for _, of := range []struct{ first, next func(string) driver.Claim }{{k.own, k.rival}, {k.rival, k.own}} {
			a := p.open("A", w.long())
			mine := of.first(w.name("told-" + k.String()))
			g := a.hold(mine)
			next := b.queue(of.next(mine.Name))
			var theirs driver.Grant
			told := w.start(func() { theirs = b.awaitAfter(next, w.tellsWithin(next), way.what+" of "+w.trace.claim(mine)) })
			w.sleep(underWay)
			way.do(a, mine, g)
			told.wait()
			b.waitsAgain(next, theirs, "a Wait had said so")
			b.letGo(next)
			if k.mate == nil {
				break // own and rival are the same
			}
		}
	}
}

// A waiter behind a claim that gives up, or that is broken while it waits, is let in beside the
// holder.
func tryToldOfGivingUp(w *world, op *breaker, k kind) {
	if k.mate == nil || !w.traits.Ordered {
		return
	}
	a, b, c := w.unrenewed("A", w.long()), w.unrenewed("B", w.long()), w.unrenewed("C", w.long())
	ways := []leaving{{"the Release", func(a *actor, c driver.Claim, _ driver.Grant) { a.release(c) }}}
	if op != nil {
		ways = append(ways, leaving{"the Break", func(_ *actor, c driver.Claim, _ driver.Grant) { op.hitsWaiting(c) }})
	}
	for _, way := range ways {
		name := w.name("told-gave-up-" + k.String())
		holds, gone, next := a.held(k.own(name)), b.queue(k.rival(name)), c.queue(k.mate(name))
		told := w.start(func() {
			c.awaitAfter(next, w.tellsWithin(next), way.what+", while it waited ahead, of "+w.trace.claim(gone))
		})
		w.sleep(underWay)
		way.do(b, gone, driver.Grant{})
		told.wait()
		c.letGo(next)
		b.release(gone)
		a.letGo(holds)
	}
}

// Several claims of one session and of another one in the same process wait, in one line and in
// two.
func tryToldEach(w *world, k kind) {
	h, a := w.unrenewed("H", w.long()), w.unrenewed("A", w.long())
	twin := a.p.open("A2", w.long())
	one, two := h.held(k.own(w.name("told-each-"+k.String()))), h.held(k.own(w.name("told-each-"+k.String())))
	var tasks []*task
	for _, of := range []struct {
		a    *actor
		name string
	}{{a, one.Name}, {a, one.Name}, {twin, one.Name}, {a, two.Name}} {
		mine := of.a.queue(k.rival(of.name))
		tasks = append(tasks, w.start(func() {
			of.a.awaitAfter(mine, w.atOnce(), "it was let in while other Waits of its session and process were under way")
			of.a.letGo(mine)
		}))
		w.sleep(underWay)
	}
	h.letGo(one)
	h.letGo(two)
	waitForAll(tasks, sooner)
}
