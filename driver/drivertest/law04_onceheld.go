package drivertest

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

var onceHeldLaw = Law{
	Name: "Law04_OnceHeld",
	Says: "A claim that is held stays held until it is released, its session ends, or it is broken: renewed in time, it " +
		"outlives any number of times-to-live and whatever others do, of whatever kind it is and however many there are.",
	try: func(w *world) {
		w.parts(
			func(w *world) { w.apart(func() { w.eachKind(tryOnceHeld) }, func() { tryMany(w) }) },
			tryOverRestart,
		)
	},
}

// disturbance is something that must not end a hold.
type disturbance struct {
	what string
	do   func()
}

// The holder is renewed for more than two times its time while all the others come, wait, give up,
// die and leave.
func tryOnceHeld(w *world, k kind) {
	a := w.unrenewed("A", w.ttl)
	name := w.name("held-" + k.String())
	mine := k.own(name)
	a.hears()
	first := a.hold(mine)
	steady := w.actor("W")
	waits := steady.queue(k.rival(name)) // stands behind from the first moment to the last
	check := func(after string) {
		if a.knowsLost(mine) {
			w.fail("after %s its session is told that this %s is lost although it was neither released nor broken: %s", after, k, w.trace.claim(mine))
		}
		if g := steady.state(waits); g.Held {
			w.fail("after %s the next in line holds although this %s was neither released nor broken and its session was renewed in time: %s", after, k, w.trace.claim(mine))
		}
	}
	disturb := disturbances(w, k, a, name)
	began := time.Now()
	pause := a.valid / 4
	for i := 0; i < len(disturb) || time.Since(began) < a.valid*9/4; i++ {
		a.renewInTime(mine)
		after := "nothing but time"
		if i < len(disturb) {
			disturb[i].do()
			after = disturb[i].what
		}
		check(after)
		if i >= 2 {
			w.sleep(pause)
		}
	}
	a.renewInTime(mine)
	if g := a.state(mine); !g.Held || g.Fence != first.Fence {
		w.fail("%s answered %s when it was granted and %s at the end", w.trace.claim(mine), w.trace.grant(first, nil), w.trace.grant(g, nil))
	}
	a.letGo(mine)
	steady.await(waits, patience)
}

// disturbances are what must not end the hold of a.
func disturbances(w *world, k kind, a *actor, name string) []disturbance {
	disturb := []disturbance{
		{"a stranger's try", func() { w.actor("B").denied(k.rival(name)) }},
		{"a waiter that gave up", func() {
			b := w.actor("B")
			c := b.queue(k.rival(name))
			ctx, cancel := context.WithTimeout(w.ctx, 5*time.Millisecond)
			defer cancel()
			_, _ = b.tryWait(ctx, c) // is to be ended, and may be back before
			b.release(c)
		}},
		{"a waiter whose session was closed", func() {
			b := w.actor("B")
			b.queue(k.rival(name))
			b.close()
		}},
		{"another session of the same process was closed", func() {
			b := a.p.open("A2", w.ttl)
			b.hold(k.own(w.name("other")))
			b.queue(k.rival(name))
			b.close()
		}},
		{"another claim of the same session was released", func() {
			c := a.held(k.own(w.name("other")))
			a.letGo(c)
		}},
		{"a release by somebody who never held it", func() {
			if w.actor("B").release(k.own(name)) {
				w.fail("the Release of a claim that was never there said that it had been held")
			}
		}},
	}
	if w.traits.Expires {
		disturb = append(disturb, disturbance{"a waiter whom nobody renews", func() {
			b := w.unrenewed("B", w.ttl)
			b.queue(k.rival(name))
			b.lapse()
		}})
	}
	return disturb
}

// Renew reaches all claims of a session, of all kinds.
func tryMany(w *world) {
	a, b := w.actor("M"), w.actor("N")
	ks := w.kinds()
	var mine, rivals []driver.Claim
	for i := range manyClaims {
		k, name := ks[i%len(ks)], w.name("many")
		mine, rivals = append(mine, a.held(k.own(name))), append(rivals, k.rival(name))
	}
	w.sleep(a.valid * 5 / 4)
	for i, c := range mine {
		if a.knowsLost(c) {
			w.fail("%s, number %d of %d claims of one session, is lost although the session was renewed in time", w.trace.claim(c), i+1, manyClaims)
		}
		if g := b.state(rivals[i]); g.Held {
			w.fail("%s was let in although %s, number %d of %d claims of one session, was renewed in time", w.trace.claim(rivals[i]), w.trace.claim(c), i+1, manyClaims)
		}
	}
	a.close()
}

// What Traits.Survives says of a restart is seen both ways.
func tryOverRestart(w *world) {
	r, ok := w.h.(Restarter)
	if !ok {
		if w.traits.Survives.Restart {
			w.lacks("Restarter", "whether claims survive a restart of the store, as Traits.Survives.Restart says")
		}
		return
	}
	a := w.unrenewed("A", w.long())
	ks := w.kinds()
	var all []driver.Claim
	for _, k := range ks {
		all = append(all, a.held(k.own(w.name("restart-"+k.String()))))
	}
	from := time.Now()
	w.restart(r)
	for i, mine := range all {
		var held bool
		w.until(patience, func() bool {
			b := w.unrenewed("B", w.ttl)
			b.lapse()
			g, err := b.tryAcquire(w.ctx, ks[i].rival(mine.Name))
			held = g.Held
			return err == nil
		}, "a new session cannot use the store after its restart")
		switch {
		case w.traits.Survives.Restart && held:
			w.fail("after the store restarted another was let in beside this %s, although claims survive that: %s", mine.Kind, w.trace.claim(mine))
		case !w.traits.Survives.Restart && !held && time.Since(from) < a.valid/2:
			w.fail("this %s still stands after the store restarted: Traits.Survives.Restart should be true: %s", mine.Kind, w.trace.claim(mine))
		}
	}
}
