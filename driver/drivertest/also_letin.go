package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

var letInLaw = Law{
	Name: "Also_LetIn",
	Says: "A claim that Wait returns as held is not let go before Valid is over, counted from the start of the last answered Renew that " +
		"began after its Acquire was answered: also of one that began while the answer which let the claim in was on its way, and so may " +
		"have passed over it. Or the claim is told to be lost.",
	try: tryLetIn,
}

// onItsWay is for which parts of the claim's time the answer is on its way: for longer than what a
// store takes off for its rounding and for clocks, and for less than a driver waits for an answer,
// which may be a short part of its time or a long one.
var onItsWay = []float64{0.2, 0.45}

// lookRequests is how many requests of a look are tried: the last of them lets the claim in, after
// others that see that it is free.
const lookRequests = 3

func tryLetIn(w *world) {
	st, ok := w.h.(Staller)
	switch {
	case !w.traits.Expires:
		return // nothing is over while the session is there
	case !ok:
		w.lacks("Staller", "what a Renew is worth that begins while the answer which lets a claim in is on its way")
		return
	}
	requests := 1
	if _, ok := w.h.(Straggler); ok { // Also_Outcomes says so where it is none
		requests = lookRequests
	}
	w.eachKind(func(w *world, k kind) {
		b := w.actor("B")
		var all []func()
		for _, part := range onItsWay {
			for n := range requests {
				all = append(all, func() { tryRenewWhileLetIn(w, st, k, b, n, part) })
			}
		}
		w.apart(all...)
	})
}

// A Renew that finds the claim waiting, as far as its session was told, while the store has let it
// in.
func tryRenewWhileLetIn(w *world, st Staller, k kind, b *actor, n int, part float64) {
	a := w.unrenewed("A", max(w.ttl, w.clamp(2*w.traits.MinTTL))) // of which rounding is not the most
	a.hears()
	theirs := b.held(k.rival(w.name("let-in-" + k.String())))
	mine, started := queued(k.own(theirs.Name)), time.Now()
	a.queue(mine)
	// It has subscribed then, where there is something to subscribe to.
	_ = a.briefly(func(ctx context.Context) error { _, err := a.tryWait(ctx, mine); return err })

	onTheWay, holds := time.Duration(part*float64(a.valid)), false
	told, heal := a.letInUnheard(st, n, func() { b.letGo(theirs) }, func() { holds = a.holdsOrLost(mine, onTheWay+patience) })
	defer heal()
	w.sleep(onTheWay)
	var r driver.Renewal
	var failed error
	began := time.Now()
	renewed := w.start(func() { r, failed = a.tryRenew(w.ctx) })
	w.sleep(begins)
	heal()
	told.wait()
	renewed.wait()
	if !holds || a.knowsLost(mine) {
		a.lapse()
		_, _ = a.tryRelease(w.ctx, mine) // nothing is said here of what is lost
		return
	}
	if failed == nil && r.Valid > 0 {
		started, a.valid = began, r.Valid
	}
	next := queued(k.rival(mine.Name))
	during("and its last Renew began while the answer that let it in was on its way", func() {
		if !b.state(next).Held {
			a.lettingIn(mine, b, next, started)
		} else if early := time.Until(started.Add(a.valid)); early > 0 {
			w.fail("%s was let in %v before the time of %s was over", w.trace.claim(next), early, w.trace.claim(mine))
		}
	})
	b.letGo(next)
}

// begins is for how long a call is given time to begin.
const begins = 20 * underWay

// letInUnheard has letGo let in a claim that wait waits for, and the answer that says so held up
// until heal: where nobody is told, the one to the request that follows n others of a look.
func (a *actor) letInUnheard(st Staller, n int, letGo, wait func()) (told *task, heal func()) {
	if n == 0 {
		heal = a.stalled(st, Replies)
		letGo()
		return a.w.start(wait), heal
	}
	letGo()
	deliver := a.straggling(n)
	told = a.w.start(wait)
	a.w.sleep(begins)
	heal = a.stalled(st, Replies)
	deliver()
	return told, heal
}

// holdsOrLost waits until a claim that nobody stands in the way of is held, or said to be lost, and
// reports which. A Wait whose answer is held up may fail meanwhile.
func (a *actor) holdsOrLost(c driver.Claim, within time.Duration) (holds bool) {
	w := a.w
	w.until(within, func() bool {
		g, err := a.tryWait(w.ctx, c)
		holds = err == nil && g.Held
		return holds || errors.Is(err, driver.ErrGone) || errors.Is(err, driver.ErrSessionLost) || w.ctx.Err() != nil
	}, "%s is told neither that it holds nor that it is lost, although nobody stands in its way", w.trace.claim(c))
	return holds
}
