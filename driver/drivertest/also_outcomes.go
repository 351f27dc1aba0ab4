package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

var outcomesLaw = Law{
	Name: "Also_Outcomes",
	Says: "An error says no more than is known. Of a call whose answer did not come it matches none of ErrSessionLost, ErrRefused, " +
		"ErrBroken and ErrGone, and ErrNotSent only where nothing was changed; so it is with a Wait that its context ended, which " +
		"leaves the claim in its place.",
	try: tryOutcomes,
}

func tryOutcomes(w *world) {
	parts := []func(){
		func() { w.eachKind(tryEndedWait) },
		func() { w.eachKind(tryEndedContext) },
	}
	st, ok := w.h.(Staller)
	if !ok {
		w.lacks("Staller", "what the error of a call says whose answer did not come")
	} else {
		for _, way := range []Way{Replies, BothWays} {
			parts = append(parts,
				func() { tryUnansweredSession(w, st, way) },
				func() { tryUnansweredBreak(w, st, way) },
				func() {
					w.eachKind(func(w *world, k kind) {
						tryUnansweredAcquire(w, st, way, k)
						tryUnansweredRelease(w, st, way, k)
						tryUnansweredRequeue(w, st, way, k)
					})
				},
			)
		}
	}
	if _, ok := w.h.(Straggler); !ok {
		w.lacks("Straggler", "what the error of a call says whose later request is under way")
	} else {
		parts = append(parts, func() { w.eachKind(tryLaterRequest) })
	}
	w.apart(parts...)
}

// A Wait that is ended says nothing of its claim, which keeps its place.
func tryEndedWait(w *world, k kind) {
	a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
	holds := a.held(k.rival(w.name("outcome-wait-" + k.String())))
	waits := b.queue(k.own(holds.Name))
	for _, after := range []time.Duration{0, time.Millisecond, 10 * time.Millisecond} {
		ctx, cancel := context.WithCancel(w.ctx)
		timer := time.AfterFunc(after, cancel)
		for n := 0; ctx.Err() == nil && n < manyTurns; n++ { // an early return is allowed
			if g, err := b.tryWait(ctx, waits); err != nil {
				w.unknown("a Wait that its context ended", err)
			} else if g.Held {
				w.fail("%s is told to be held while A holds the name", w.trace.claim(waits))
			}
		}
		timer.Stop()
		cancel()
	}
	a.letGo(holds)
	b.await(waits, w.atOnce())
	b.letGo(waits)
}

// What was not sent because its context had ended is not sent later.
func tryEndedContext(w *world, k kind) {
	a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
	for i := range 6 {
		c := k.own(w.name("outcome-ended-" + k.String()))
		c.Queue = i%2 == 0
		ended, cancel := context.WithCancel(w.ctx)
		cancel()
		_, err := a.tryAcquire(ended, c)
		w.unknown("an Acquire with a context that had ended", err)
		if errors.Is(err, driver.ErrNotSent) {
			if i >= 4 {
				w.sleep(5 * time.Millisecond) // on its way, if it was sent
			}
			b.unchanged(k, c, "Acquire with a context that had ended")
		}
		a.release(c)
	}
}

func tryUnansweredAcquire(w *world, st Staller, way Way, k kind) {
	a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
	c := queued(k.own(w.name("outcome-acquire-" + k.String())))
	if a.unanswered(st, way, "Acquire", a.acquiring(c)) {
		b.unchanged(k, c, "Acquire")
	}
	a.release(c)
}

func tryUnansweredRelease(w *world, st Staller, way Way, k kind) {
	a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
	c := a.held(k.own(w.name("outcome-release-" + k.String())))
	next := b.queue(k.rival(c.Name))
	notSent := a.unanswered(st, way, "Release", a.releasing(c))
	if notSent && b.state(next).Held {
		w.fail("the error of Release says that nothing was changed, and %s was let in", w.trace.claim(next))
	}
	a.release(c)
	b.await(next, w.atOnce())
	b.letGo(next)
}

func tryUnansweredRequeue(w *world, st Staller, way Way, k kind) {
	a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
	if _, ok := a.s.(driver.Requeuer); !ok {
		return
	}
	old := a.held(k.own(w.name("outcome-requeue-" + k.String())))
	again := queued(k.own(old.Name))
	next := b.queue(k.rival(old.Name))
	notSent := a.unanswered(st, way, "Requeue", a.requeuing(old, again))
	if notSent && b.state(next).Held {
		w.fail("the error of Requeue says that nothing was changed, and %s was let in", w.trace.claim(next))
	}
	a.release(old)
	a.release(again)
	b.await(next, w.atOnce())
	b.letGo(next)
}

// A session whose Renew was not answered goes on, and so does its driver after an Open that was
// not.
func tryUnansweredSession(w *world, st Staller, way Way) {
	a := w.unrenewed("A", w.long())
	mine := a.held(mutex(w.name("outcome-session")))
	a.unanswered(st, way, "Renew", func(ctx context.Context) error {
		_, err := call(ctx, a, a.s.Renew, func(r driver.Renewal, err error) string { return "Renew → " + a.renewal(r, err) })
		return err
	})
	a.unanswered(st, way, "Open", func(ctx context.Context) error {
		_, err := call(ctx, a, func(ctx context.Context) (driver.Session, error) {
			return a.p.d.Open(ctx, driver.Spec{ID: driver.NewID(), TTL: w.ttl})
		}, nil)
		return err
	})
	a.renewInTime(mine)
	a.letGo(mine)
}

func tryUnansweredBreak(w *world, st Staller, way Way) {
	op := w.process("operator")
	br, _ := breakerOf(w, op.d)
	if br == nil {
		return // Law15_Break says so
	}
	a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
	mine := mutex(w.name("outcome-break"))
	g := a.hold(mine)
	next := b.queue(mutex(mine.Name))
	heal := st.Stall(w.t, op.d, way)
	defer heal()
	w.trace.add(time.Now(), "wire", "of the operator: %s", way)
	ctx, cancel := context.WithTimeout(w.ctx, min(50*time.Millisecond, a.valid/20))
	defer cancel()
	_, err := ask(ctx, w.trial, "op", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, br.look.Break(ctx, mine.Name, driver.PublicID(mine.ID), g.Fence, true)
	}, func(_ struct{}, err error) string {
		return "Break(" + w.trace.label(mine.ID) + ") → " + w.trace.err(err)
	})
	if err == nil {
		w.fail("Break was answered over a stalled wire: the harness does not stall, or the driver answers for the store")
	}
	w.unknown("Break", err)
	if way == Replies && errors.Is(err, driver.ErrNotSent) && b.state(next).Held {
		w.fail("the error of Break says that nothing was changed, and %s was let in", w.trace.claim(next))
	}
	heal()
	a.release(mine)
	b.await(next, w.atOnce())
	b.letGo(next)
}
