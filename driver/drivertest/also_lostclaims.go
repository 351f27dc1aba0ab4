package drivertest

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/driver"
)

var lostClaimsLaw = Law{
	Name: "Also_LostClaims",
	Says: "Renew names in Lost what its own session has lost, what was broken in each answer until it is released, and nothing else: no " +
		"claim that was released, requeued or denied, or is just about to be, and none that waits. Nor does the channel Lost, which stays open as long as the " +
		"session lives. To lose a claim ends no session.",
	try: tryLostClaims,
}

func tryLostClaims(w *world) {
	op := w.operator()
	w.eachKind(func(w *world, k kind) {
		a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
		x := &losers{w: w, a: a, all: []*actor{a, a.p.open("A2", w.long()), b}, fate: map[string]string{}}
		theirs := b.held(k.rival(w.name("lost-" + k.String())))
		waits := a.queue(k.own(theirs.Name))
		x.fate[waits.ID] = "waits"
		tryLosesNothing(x, k, theirs.Name)
		if op != nil {
			tryLosesTheBroken(x, op, k, theirs.Name)
		}
		tryRenewUnanswered(x)
		tryRenewBeside(x, k)
		last := a.held(k.own(w.name("lost-last-" + k.String())))
		x.fate[waits.ID], x.fate[last.ID] = "waited and was released", "was released"
		a.release(waits)
		a.letGo(last)
		x.lose("the Release of the last claim")
		b.letGo(theirs)
	})
}

// Nobody loses anything.
func tryLosesNothing(x *losers, k kind, busy string) {
	w, a := x.w, x.a
	waits := a.queue(k.own(busy))
	x.fate[waits.ID] = "waited and was released"
	a.release(waits)
	x.lose("the Release of a claim that waited")

	try := k.own(busy)
	x.fate[try.ID] = "was denied"
	a.denied(try)
	x.lose("a try that was denied")

	mine := queued(k.own(w.name("lost-" + k.String())))
	a.hold(mine)
	if _, ok := a.s.(driver.Requeuer); ok {
		next := queued(k.own(mine.Name))
		x.fate[mine.ID], x.fate[next.ID] = "was requeued", "is held"
		a.requeue(mine, next)
		x.lose("a Requeue")
		mine = next
	}
	x.fate[mine.ID] = "was released"
	a.letGo(mine)
	x.lose("the Release of a claim that was held")
}

// One session loses what it holds and what it waits for.
func tryLosesTheBroken(x *losers, op *breaker, k kind, busy string) {
	w, a := x.w, x.a
	keeps := a.held(k.own(w.name("lost-keeps-" + k.String())))
	x.fate[keeps.ID] = "is held"
	mine := k.own(w.name("lost-broken-" + k.String()))
	g := a.hold(mine)
	waits := a.queue(k.own(busy))
	x.fate[mine.ID], x.fate[waits.ID] = "was broken", "was broken"
	for _, c := range []driver.Claim{mine, waits} {
		if c.ID == mine.ID {
			op.hits(c, g, false)
		} else {
			op.hitsWaiting(c)
		}
		a.notified(c, c.ID == mine.ID)
		if g, err := a.tryAcquire(w.ctx, c); errors.Is(err, driver.ErrSessionLost) {
			w.fail("Acquire of %s, which was broken, answered %s in a session that lives", w.trace.claim(c), w.trace.answer(g, err))
		}
	}
	x.lose("the Break of two claims", mine, waits)
	if !a.state(keeps).Held {
		w.fail("%s is gone after the Break of two other claims", w.trace.claim(keeps))
	}
	x.fate[mine.ID], x.fate[waits.ID] = "was broken and released", "was broken and released"
	a.release(mine)
	a.release(waits)
	x.lose("the Release of two claims that were broken")
	a.letGo(keeps)
}

// A Renew that is not answered in time says nothing of the session.
func tryRenewUnanswered(x *losers) {
	if _, lost := x.a.channels(); lost == nil {
		return
	}
	st, ok := x.w.h.(Staller)
	if !ok {
		return // Also_Contexts says so
	}
	for _, way := range []Way{BothWays, Replies} {
		heal := x.a.stalled(st, way)
		x.a.timesOut("Renew", func(ctx context.Context) error { _, err := x.a.tryRenew(ctx); return err })
		heal()
		x.hear("a Renew that was not answered in time")
		x.lose("a Renew that was not answered in time")
	}
}
