package drivertest

import "time"

// Two sessions of one driver have a time each: the longer one is renewed and goes on, and that does
// nothing to the shorter one.
func tryExpiryBesideOther(w *world, k kind) {
	p, b := w.process("U"), w.actor("V")
	long := p.open("U1", w.long())
	long.keepRenewing()
	a := p.open("U2", w.ttl)
	if a.valid >= long.valid {
		return // the store has one time for all
	}
	theirs := long.held(k.own(w.name("expiry-longer-" + k.String())))
	mine := k.own(w.name("expiry-shorter-" + k.String()))
	started := time.Now()
	a.hold(mine)
	next := b.queue(k.rival(mine.Name))
	renewed := w.start(func() {
		w.sleep(time.Until(a.asked.Add(a.valid / 2)))
		a.validStays()
		long.renewInTime(theirs)
	})
	during("beside another session of its driver, which has a longer time and was renewed", func() {
		a.lettingIn(mine, b, next, started)
	})
	renewed.wait()
	during("beside another session of its driver, whose shorter time was over", func() {
		long.renewInTime(theirs)
		if !long.state(theirs).Held {
			w.fail("%s is gone although its session was renewed in time", w.trace.claim(theirs))
		}
		b.denied(k.rival(theirs.Name))
	})
	long.letGo(theirs)
	b.letGo(next)
}

// validStays insists that Valid is what it was when the session was opened, before any Renew.
func (a *actor) validStays() {
	if now := a.s.Valid(); now < a.valid {
		a.w.fail("Valid of a session that was not renewed is %v %v after Open and was %v at first: it is counted from the start of Open and does not run down",
			now, time.Since(a.asked), a.valid)
	}
}
