package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

var expiryLaw = Law{
	Name: "Law08_Expiry",
	Says: "Where claims expire, one goes after Valid and at most Grain later, and never before Valid is over, counted from " +
		"the start of the session's last good Renew or of the claim's own last Acquire, unless the store knows that every " +
		"process which may act for the session has ended: then within Notice. Any other call of the session may renew it, too. " +
		"Elsewhere it stays, and so does what waits in a session that is renewed. What is gone does not come back, is shown no more, and is lost as gone.",
	try: tryExpiry,
}

// Each part has sessions and names of its own, so they pass their time together. All open their
// drivers at once, which takes some stores seconds: a session whose time runs is opened last.
func tryExpiry(w *world) {
	if !w.traits.Expires {
		w.apart(func() { w.eachKind(tryStays) }, func() { w.eachKind(tryWaitsLong) }, func() { w.eachKind(tryDeath) })
		return
	}
	w.apart(
		func() { w.eachKind(tryExpiryOfHolder) },
		func() { w.eachKind(tryExpiryAfterRenew) },
		func() { w.eachKind(tryExpiryAfterAcquire) },
		func() { w.eachKind(tryExpiryOfWaiter) },
		func() { w.eachKind(tryExpiryBetween) },
		func() { w.eachKind(tryExpiryLetsInAll) },
		func() { w.eachKind(tryShortestTTL) },
		func() { w.eachKind(tryAcquireLate) },
		func() { w.eachKind(tryQueueLate) },
		func() { w.eachKind(tryWaitsLong) },
		func() { w.eachKind(tryExpiryBesideOther) },
		func() { w.eachKind(tryDeath) },
		func() { tryExpiryIsShown(w) },
	)
}

// afterwards shows that a's claim is gone for good and known to be, and that nothing a does about
// it touches b's.
func afterwards(w *world, a *actor, k kind, gone driver.Claim, b *actor, theirs driver.Claim) {
	if held, err := a.tryRelease(w.ctx, k.own(gone.Name)); held || err != nil && !errors.Is(err, driver.ErrSessionLost) {
		w.fail("after %s had expired, the Release of another claim answered held=%v, error %v", w.trace.label(gone.ID), held, err)
	}
	if g, err := a.tryAcquire(w.ctx, gone); !errors.Is(err, driver.ErrGone) && !errors.Is(err, driver.ErrSessionLost) {
		w.fail("Acquire of %s, which had expired, answered %s: want an error that matches ErrGone or ErrSessionLost", w.trace.label(gone.ID), w.trace.answer(g, err))
	}
	if gone.Queue {
		a.waitEnds(gone)
	}
	r, err := a.tryRenew(w.ctx) // tells by Lost or by its error
	if !a.knowsLost(gone) {
		w.fail("%s had expired, and the next Renew neither named it in Lost nor failed with ErrSessionLost: %s", w.trace.label(gone.ID), answered{err, a.renewal(r, err)})
	}
	a.lostSilently(gone)
	if held, err := a.tryRelease(w.ctx, gone); held || err != nil && !errors.Is(err, driver.ErrSessionLost) {
		w.fail("the Release of %s, which had expired, answered held=%v, error %v", w.trace.label(gone.ID), held, err)
	}
	if !b.state(theirs).Held {
		w.fail("%s is gone after the former holder renewed and released %s", w.trace.claim(theirs), w.trace.label(gone.ID))
	}
	w.actor("Z").denied(k.own(gone.Name))
	b.letGo(theirs)
}

// What expires while it waits is gone as well, where the store has a time for what waits.
func tryExpiryOfHolder(w *world, k kind) {
	b, h, a := w.actor("B"), w.actor("H"), w.unrenewed("A", w.odd())
	theirs := h.held(k.rival(w.name("expiry-waits-" + k.String())))
	waits := a.queue(k.own(theirs.Name))
	behind := b.queue(k.rival(theirs.Name))
	mine := queued(k.own(w.name("expiry-" + k.String())))
	started := time.Now()
	a.hold(mine)
	next := b.queue(k.rival(mine.Name))
	a.lettingIn(mine, b, next, started)
	h.letGo(theirs)
	if w.traits.Ordered {
		a.standsOrIsGone(waits, b, behind)
	}
	if _, err := a.tryRelease(w.ctx, waits); err != nil && !errors.Is(err, driver.ErrSessionLost) {
		w.fail("the Release of %s, whose time was over, failed: %v", w.trace.claim(waits), err)
	}
	b.await(behind, patience)
	b.letGo(behind)
	afterwards(w, a, k, mine, b, next)
}

// One Renew at half time moves the end of what is held and of what waits.
func tryExpiryAfterRenew(w *world, k kind) {
	b, h, a := w.actor("D"), w.actor("H"), w.unrenewed("C", w.odd())
	mine := a.held(k.own(w.name("expiry-renewed-" + k.String())))
	next := b.queue(k.rival(mine.Name))
	theirs := h.held(k.rival(w.name("expiry-renewed-waiter-" + k.String())))
	waits := a.queue(k.own(theirs.Name))
	w.sleep(time.Until(a.asked.Add(a.valid / 2)))
	started := time.Now()
	r := a.renew()
	if time.Since(a.asked) >= a.valid {
		w.tooSlow("the session's time was over when it was renewed")
	}
	if r.Valid <= 0 || len(r.Lost) > 0 {
		w.fail("Renew in time answered %s, want a positive time and nothing lost", a.renewal(r, nil))
	}
	a.valid = r.Valid
	release := w.start(func() {
		w.sleep(time.Until(started.Add(a.valid * 8 / 10))) // later than its time had it not been renewed
		h.letGo(theirs)
		inTime := func() {
			if time.Since(started) >= a.valid {
				w.tooSlow("the waiter's time was over when it was let in")
			}
		}
		if w.traits.Ordered {
			g, _ := h.tryAcquire(w.ctx, k.rival(theirs.Name)) // an error says nothing of the waiter
			inTime()
			if g.Held {
				w.fail("%s waited in a session that was renewed in time, and then H was let in past it", w.trace.claim(waits))
			}
		}
		ctx, cancel := context.WithDeadline(w.ctx, started.Add(a.valid))
		defer cancel()
		for {
			g, err := a.tryWait(ctx, waits)
			if ctx.Err() != nil && !g.Held { // the machine was slow, or nobody lets in anybody
				tryLetsIn(w, k)
			}
			inTime()
			switch {
			case err != nil:
				w.fail("%s waited in a session that was renewed in time, and then %s", w.trace.claim(waits), w.trace.answer(g, err))
			case g.Held:
				return
			}
		}
	})
	a.lettingIn(mine, b, next, started)
	release.wait()
	afterwards(w, a, k, mine, b, next)
}

// An answered Acquire renews its own claim, put in line then or asked for again, in a session that
// nobody renews.
func tryExpiryAfterAcquire(w *world, k kind) {
	b, c, a := w.actor("F"), w.actor("G"), w.unrenewed("E", w.ttl)
	early := a.held(k.own(w.name("expiry-asked-" + k.String())))
	// Where claims have times of their own this one's is over first, which does nothing to the
	// others.
	other := a.held(k.own(w.name("expiry-first-" + k.String())))
	b.queue(k.rival(other.Name))
	nextEarly := b.queue(k.rival(early.Name))
	w.sleep(time.Until(a.asked.Add(a.valid * 6 / 10)))
	askedAgain := time.Now()
	if g, err := a.tryAcquire(w.ctx, early); !g.Held {
		if time.Since(a.asked) >= a.valid {
			w.tooSlow("the claim's time was over when it was asked for")
		}
		w.fail("within its time %s answered %s", w.trace.claim(early), w.trace.answer(g, err))
	}
	late := k.own(w.name("expiry-late-" + k.String()))
	acquired := time.Now()
	a.hold(late)
	nextLate := c.queue(k.rival(late.Name))
	w.apart(
		func() { a.lettingIn(early, b, nextEarly, askedAgain) },
		func() { a.lettingIn(late, c, nextLate, acquired) },
	)
	b.letGo(nextEarly)
	afterwards(w, a, k, late, c, nextLate)
}

// A waiter that nobody renews keeps nobody out after its time.
func tryExpiryOfWaiter(w *world, k kind) {
	h, b, a := w.actor("I"), w.actor("K"), w.unrenewed("J", w.ttl)
	holds := h.held(k.rival(w.name("expiry-waiter-" + k.String())))
	started := time.Now()
	dead := a.queue(k.own(holds.Name))
	next := b.queue(k.rival(holds.Name))
	w.sleep(a.valid / 2)
	a.lapse()
	h.letGo(holds)
	if w.traits.Ordered { // a waiter that did not look holds now, until its time is over
		a.lettingIn(dead, b, next, started)
	} else {
		b.await(next, a.valid+w.traits.Grain+w.slack()+patience)
	}
	b.letGo(next)
}

// An expiry that lets in many wakes all of them, and they are not renewed meanwhile.
func tryExpiryLetsInAll(w *world, k kind) {
	if k.mate == nil {
		return
	}
	a := w.unrenewed("A", w.ttl)
	if w.longValid < 2*a.valid {
		return // a waiter has to be renewed before the time is over, and may learn of the grant by that
	}
	gone := a.held(k.rival(w.name("expiry-all-" + k.String())))
	var waits []func()
	for _, name := range []string{"R1", "R2", "R3"} {
		r := w.unrenewed(name, w.long())
		mine := r.queue(k.mate(gone.Name))
		waits = append(waits, func() {
			r.awaitAfter(mine, a.valid+w.traits.Grain+w.slack()+w.atOnce(), "the time of "+w.trace.claim(gone)+" was over, which lets in three")
			r.lapse() // other parts may take longer
		})
	}
	a.lapse()
	w.apart(waits...)
}

// An Acquire that is answered is worth its time also in a session that nobody has renewed for
// longer than that, unless the store has ended the session and says so.
func tryAcquireLate(w *world, k kind) {
	a, b := w.unrenewed("P", w.ttl), w.actor("Q")
	a.lapse()
	w.sleep(a.valid * 3 / 2)
	mine := k.own(w.name("expiry-unrenewed-" + k.String()))
	next := queued(k.rival(mine.Name))
	started := time.Now()
	g, err := a.tryAcquire(w.ctx, mine)
	if errors.Is(err, driver.ErrSessionLost) {
		b.letGo(b.held(next)) // it stands nowhere
		return
	}
	if err != nil || !g.Held {
		w.fail("in a session that nobody had renewed for %v %s, which is free, answered %s: want held, or an error that matches ErrSessionLost",
			a.valid*3/2, w.trace.claim(mine), w.trace.answer(g, err))
	}
	if b.state(next).Held {
		if time.Since(started) >= a.valid {
			w.tooSlow("the claim's time was over when its rival came")
		}
		w.fail("in a session that nobody had renewed for %v %s was answered held, and its rival %s was let in at once",
			a.valid*3/2, w.trace.claim(mine), w.trace.claim(next))
	}
	a.lettingIn(mine, b, next, started)
	b.letGo(next)
}

// The same of a claim that waits at first.
func tryQueueLate(w *world, k kind) {
	a, b, h := w.unrenewed("R", w.ttl), w.actor("S"), w.actor("T")
	theirs := h.held(k.rival(w.name("expiry-unrenewed-waiter-" + k.String())))
	a.lapse()
	w.sleep(a.valid * 3 / 2)
	waits := queued(k.own(theirs.Name))
	started := time.Now()
	g, err := a.tryAcquire(w.ctx, waits)
	lost := errors.Is(err, driver.ErrSessionLost)
	if g.Held || err != nil && !lost {
		w.fail("in a session that nobody had renewed for %v %s, behind %s, answered %s: want that it waits, or an error that matches ErrSessionLost",
			a.valid*3/2, w.trace.claim(waits), w.trace.claim(theirs), w.trace.answer(g, err))
	}
	next := b.queue(k.rival(theirs.Name))
	h.letGo(theirs)
	if w.traits.Ordered && !lost { // a waiter that did not look holds now, until its time is over
		a.lettingIn(waits, b, next, started)
	} else {
		b.await(next, a.valid+w.traits.Grain+w.slack()+patience)
	}
	b.letGo(next)
}

// A store without expiry is seen not to expire.
func tryStays(w *world, k kind) {
	a, b := w.unrenewed("A", w.ttl), w.actor("B")
	mine := a.held(k.own(w.name("stays-" + k.String())))
	next := b.queue(k.rival(mine.Name))
	a.lapse()
	w.sleep(a.valid * 5 / 2)
	a.validStays()
	b.denied(k.rival(mine.Name))
	if b.state(next).Held {
		w.fail("%s was let in after %v without a Renew of the holder: then Traits.Expires should be true", w.trace.claim(next), a.valid*5/2)
	}
	a.letGo(mine)
	b.await(next, patience)
	b.letGo(next)
}

// The death of a process is seen within Notice by a store that can see it, and by nothing but time
// elsewhere.
func tryDeath(w *world, k kind) {
	killer, ok := w.h.(Killer)
	if !ok {
		if w.traits.Notice > 0 || w.traits.Survives.Process {
			w.lacks("Killer", "what the store does when a process dies, as Traits.Notice and Traits.Survives.Process say")
		}
		return
	}
	ttl, seen := w.ttl, w.traits.Notice > 0 && !w.traits.Survives.Process
	if seen {
		ttl = w.long()
	}
	b, h, a, waiter := w.actor("N"), w.actor("O"), w.unrenewed("L", ttl), w.unrenewed("M", ttl)
	mine := k.own(w.name("death-" + k.String()))
	started := time.Now()
	a.hold(mine)
	waiter.queue(k.rival(mine.Name))
	next := b.queue(k.rival(mine.Name))
	for _, dead := range []*actor{waiter, a} {
		dead.kill(killer)
	}
	from := time.Now()
	if !seen {
		if !w.traits.Expires {
			w.sleep(a.valid * 5 / 2)
			b.denied(k.rival(mine.Name))
			return
		}
		b.await(next, 2*(a.valid+w.traits.Grain+w.slack()))
		if early := time.Until(started.Add(a.valid)); early > 0 {
			w.fail("%s was let in %v before the killed holder's time was over: the store sees deaths, so Traits.Notice should not be 0 and Traits.Survives.Process not be true",
				w.trace.claim(next), early)
		}
		b.letGo(next)
		return
	}
	b.await(next, w.traits.Notice+w.slack()+patience)
	if late := time.Since(from) - w.traits.Notice - w.slack(); late > 0 {
		w.failLate("%s was let in %v after the holder and the waiter before it had been killed: want at most Notice, %v, and %v for a slow machine",
			w.trace.claim(next), time.Since(from), w.traits.Notice, w.slack())
	}
	h.denied(k.own(mine.Name))
	b.letGo(next)
}
