package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

var breakLaw = Law{
	Name: "Law15_Break",
	Says: "Break hits the claim and token that it names, or nothing. A held claim is marked and its owner nudged; the next is let " +
		"in when the owner has released it or its time is over, so that the owner knows before. With now the next is let in at once. " +
		"A Wait under way of a claim that waits does not sleep on. A claim that is marked can be broken again, and the owner of two " +
		"hears of each. A claim that is marked is lost as broken; one that left the line at once, as broken or gone. So it is for each kind, and whoever shares is left alone.",
	try: tryBreak,
}

func tryBreak(w *world) {
	br, lack := breakerOf(w, w.process("operator").d)
	if br == nil {
		w.without("Break", lack)
		return
	}
	w.eachKind(func(w *world, k kind) {
		x := &tokens{w: w, name: w.name("break-" + k.String()), claim: k.rival}
		w.apart(
			func() { tryBreakMisses(w, br, k) },
			func() { tryBreakInTwoPhases(w, br, k, x); tryBreakNow(w, br, k, x) },
			func() { tryBreakAlone(w, br, k) },
			func() { tryBreakAgain(w, br, k) },
			func() { tryBreakWaiter(w, br, k) },
			func() { tryBreakUnheard(w, br, k) },
		)
	})
}

func tryBreakMisses(w *world, br *breaker, k kind) {
	a, b := w.actor("A"), w.actor("B")
	mine := k.own(w.name("break-misses-" + k.String()))
	g := a.hold(mine)
	waits := b.queue(k.rival(mine.Name))
	public := driver.PublicID(mine.ID)
	for _, now := range []bool{false, true} {
		if !k.Exclusive() {
			br.misses("a claim that has no token by one", mine.Name, public, driver.Stride, now)
		} else if w.traits.Fence != driver.NoFence {
			br.misses("a claim with the token of an earlier one", mine.Name, public, g.Fence-w.stride(), now)
			br.misses("a claim with another of its tokens", mine.Name, public, g.Fence+1, now)
			br.misses("a claim with no token", mine.Name, public, 0, now)
		}
		br.misses("a claim that never was", mine.Name, driver.PublicID("nobody"), g.Fence, now)
		br.misses("a claim by its secret ID", mine.Name, mine.ID, g.Fence, now)
		br.misses("a claim under another name", mine.Name+"x", public, g.Fence, now)
		// Not a later one: that may be what the waiting claim's will be, where a claim has its
		// token from the moment it joined.
		br.misses("a waiting claim with the holder's token", mine.Name, driver.PublicID(waits.ID), max(g.Fence, driver.Stride), now)
	}
	a.renewInTime(mine)
	if again := a.state(mine); !same(again, g) {
		w.fail("%s answers %s after breaks that hit nothing, and answered %s before", w.trace.claim(mine), w.trace.grant(again, nil), w.trace.grant(g, nil))
	}
	b.denied(k.rival(mine.Name))
	a.letGo(mine)
	b.await(waits, patience)
	br.misses("a claim that has left", mine.Name, public, g.Fence, true)
	if !b.state(waits).Held {
		w.fail("%s is gone after a Break of the claim before it, which had left", w.trace.claim(waits))
	}
	b.letGo(waits)
}

func tryBreakInTwoPhases(w *world, br *breaker, k kind, x *tokens) {
	a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
	mine := k.own(x.name)
	g := a.hold(mine)
	x.granted(a, mine, g)
	next := b.queue(x.own())
	br.hits(mine, g, false)
	if b.state(next).Held {
		w.fail("%s was let in before the owner of %s, which was broken, could know", w.trace.claim(next), w.trace.claim(mine))
	}
	a.notified(mine, true)
	b.denied(x.own())
	if b.state(next).Held {
		w.fail("%s was let in before the owner of %s, which was broken, has released it", w.trace.claim(next), w.trace.claim(mine))
	}
	if a.release(mine) {
		w.fail("the Release of %s, which was broken, said that it had been held until now", w.trace.label(mine.ID))
	}
	x.after("the Break of %s", w.trace.claim(mine))
	x.granted(b, next, b.await(next, w.atOnce()))
	b.letGo(next)
	again := k.own(x.name) // the session goes on
	x.granted(a, again, a.hold(again))
	a.letGo(again)
}

func tryBreakNow(w *world, br *breaker, k kind, x *tokens) {
	a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
	mine := k.own(x.name)
	g := a.hold(mine)
	x.granted(a, mine, g)
	next := b.queue(x.own())
	br.hits(mine, g, true)
	x.after("the Break of %s", w.trace.claim(mine))
	x.granted(b, next, b.await(next, w.atOnce()))
	a.notified(mine, false)
	if a.release(mine) {
		w.fail("the Release of %s, which was broken at once, said that it had been held until now", w.trace.label(mine.ID))
	}
	if !b.state(next).Held {
		w.fail("%s is gone after the former owner released %s", w.trace.claim(next), w.trace.label(mine.ID))
	}
	b.letGo(next)
}

// The owner hears of it also when nobody waits. Claims that share with the broken one, of its
// session or of another, are left alone.
func tryBreakAlone(w *world, br *breaker, k kind) {
	for _, now := range []bool{false, true} {
		a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
		mine := k.own(w.name("break-alone-" + k.String()))
		g := a.hold(mine)
		mates := map[*actor]driver.Claim{}
		if k.mate != nil {
			mates[a], mates[b] = a.held(k.mate(mine.Name)), b.held(k.mate(mine.Name))
		}
		br.hits(mine, g, now)
		a.notified(mine, !now)
		var theirs driver.Claim
		taken := now && k.mate == nil
		if taken { // what was broken at once is free, and the next claim keeps it
			theirs = b.held(k.rival(mine.Name))
		}
		if a.release(mine) {
			w.fail("the Release of %s, which was broken, said that it had been held until now", w.trace.claim(mine))
		}
		for of, mate := range mates {
			of.renewInTime(mate)
			if of.knowsLost(mate) || !of.state(mate).Held {
				w.fail("%s of %s is gone after the Break of %s, which it shared with", w.trace.claim(mate), of.name, w.trace.claim(mine))
			}
		}
		if k.mate != nil {
			w.actor("C").denied(k.rival(mine.Name))
		}
		for of, mate := range mates {
			of.letGo(mate)
		}
		if !taken {
			theirs = b.held(k.rival(mine.Name))
		}
		b.letGo(theirs)
	}
}

// A claim that is marked still stands as named: it can be marked again, and broken with now. The
// owner of two hears of each.
func tryBreakAgain(w *world, br *breaker, k kind) {
	a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
	first, second := k.own(w.name("break-again-"+k.String())), k.own(w.name("break-next-"+k.String()))
	g, h := a.hold(first), a.hold(second)
	next := b.queue(k.rival(first.Name))
	br.hits(first, g, false)
	a.notified(first, true)
	br.hits(first, g, false)
	if b.state(next).Held {
		w.fail("%s was let in when %s was broken for the second time, before its owner has released it", w.trace.claim(next), w.trace.claim(first))
	}
	br.hits(first, g, true)
	b.awaitAfter(next, w.atOnce(), w.trace.claim(first)+", which was marked, was broken with now")
	a.release(first)
	for nudge, lost := a.channels(); ; { // what was said of the first is no news
		select {
		case <-nudge:
			continue
		case _, open := <-lost:
			if open {
				continue
			}
		case <-time.After(20 * time.Millisecond):
		}
		break
	}
	br.hits(second, h, false)
	a.notified(second, true)
	a.release(second)
	b.letGo(next)
}

// A waiting claim goes at once, and its owner's Wait does not sleep on.
func tryBreakWaiter(w *world, br *breaker, k kind) {
	a, b, c := w.unrenewed("A", w.long()), w.unrenewed("B", w.long()), w.unrenewed("C", w.long())
	holds := a.held(k.rival(w.name("break-waiter-" + k.String())))
	waits := b.queue(k.own(holds.Name))
	next := c.queue(k.rival(holds.Name))
	public, fence := driver.PublicID(waits.ID), uint64(0)
	l, err := lookAt(w, br.look, holds.Name) // some stores draw a token when a claim is put in line
	if err != nil {
		w.fail("Line(%s): %v", w.trace.name(holds.Name), err)
	}
	for _, h := range l.Claims {
		if h.PublicID == public {
			fence = h.Fence
		}
	}
	ctx, stop := context.WithCancel(w.ctx)
	defer stop()
	underWay := w.start(func() { b.hearsOfBreak(ctx, waits, "a Wait under way") })
	w.sleep(5 * time.Millisecond)
	br.hits(waits, driver.Grant{Fence: fence}, false)
	b.notified(waits, false)
	defer time.AfterFunc(w.atOnce()+w.lateness(), stop).Stop()
	underWay.wait()
	late, stop := context.WithTimeout(w.ctx, w.atOnce())
	defer stop()
	b.hearsOfBreak(late, waits, "a Wait that is called afterwards")
	a.letGo(holds)
	c.await(next, w.atOnce())
	c.letGo(next)
	b.release(waits)
	free := k.rival(holds.Name)
	w.until(w.atOnce(), func() bool { return a.state(free).Held }, "after the Break of %s, which waited, and when all had left, something of it keeps others out", w.trace.claim(waits))
	a.letGo(free)
}

// hearsOfBreak calls Wait until it says that c, which is broken, is broken or gone.
func (a *actor) hearsOfBreak(ctx context.Context, c driver.Claim, what string) {
	w := a.w
	for n := 0; ; n++ {
		g, err := a.tryWait(ctx, c)
		switch {
		case errors.Is(err, driver.ErrBroken) || errors.Is(err, driver.ErrGone):
			return
		case ctx.Err() != nil:
			w.fail("%s sleeps through the Break of its claim, which waited: %s: want an error that matches ErrBroken or ErrGone", what, w.trace.claim(c))
		case err != nil || g.Held || n > manyTurns:
			w.fail("%s, whose claim waited and was broken, answered %s for %s: want an error that matches ErrBroken or ErrGone", what, w.trace.answer(g, err), w.trace.claim(c))
		}
	}
}

// An owner that does not answer keeps the next out until its time is over, and no longer.
func tryBreakUnheard(w *world, br *breaker, k kind) {
	if !w.traits.Expires {
		return
	}
	a, b := w.unrenewed("A", w.ttl), w.actor("B")
	mine := k.own(w.name("break-unheard-" + k.String()))
	started := time.Now()
	g := a.hold(mine)
	next := b.queue(k.rival(mine.Name))
	br.hits(mine, g, false)
	a.lettingIn(mine, b, next, started)
	b.letGo(next)
}
