package drivertest

import "github.com/interlock-go/interlock/driver"

// The first waiter may be the only one that looks when the time of a dead holder is over. It
// leaves, so that the next one is the first. The session of that one is long and nobody renews it:
// it cannot learn of the expiry by a renewal.
func tryGivingUpFirst(w *world, k kind) {
	if !w.traits.Expires {
		return
	}
	pa, pb, pc := w.process("A"), w.process("B"), w.process("C")
	part := func(how string, holds, first driver.Claim, leaves func(b *actor, gone driver.Claim)) func() {
		return func() {
			b, c, a := pb.open("B", w.long()), pc.open("C", w.long()), pa.open("A", w.ttl)
			if w.longValid < 3*a.valid {
				return // C has to be renewed meanwhile
			}
			a.hold(holds)
			gone, next := b.queue(first), c.queue(k.rival(holds.Name))
			a.lapse()
			told := w.start(func() {
				c.awaitAfter(next, a.valid+w.traits.Grain+w.slack()+w.atOnce(),
					"the time of "+w.trace.claim(holds)+" was over: "+w.trace.claim(gone)+" had waited before it and "+how)
			})
			w.sleep(a.valid / 10) // C's Wait has done what it does first
			leaves(b, gone)
			told.wait()
			c.letGo(next)
		}
	}
	given := func(b *actor, gone driver.Claim) { b.release(gone) }
	closed := func(b *actor, _ driver.Claim) { b.close() }
	one, two, three := w.name("hole-first-"+k.String()), w.name("hole-first-closed-"+k.String()), w.name("hole-first-shared-"+k.String())
	parts := []func(){
		part("gave up", k.rival(one), k.own(one), given),
		part("was closed", k.rival(two), k.own(two), closed),
	}
	if k.mate != nil {
		parts = append(parts, part("gave up", k.own(three), k.rival(three), given))
	}
	w.apart(parts...)
}
