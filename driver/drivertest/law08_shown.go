package drivertest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// A claim whose time is over is shown no more, and one that is renewed is shown to end later.
func tryExpiryIsShown(w *world) {
	look := viewer(w)
	if look == nil {
		return
	}
	w.apart(
		func() { w.eachKind(func(w *world, k kind) { tryExpiredIsGone(w, look, k) }) },
		func() { w.eachKind(func(w *world, k kind) { tryRenewedIsShown(w, look, k) }) },
		func() { w.eachKind(tryExpiryIsWatched) },
		func() { w.eachKind(func(w *world, k kind) { tryDeadWaiterIsGone(w, look, k) }) },
	)
}

// A waiter whose process has died is shown no more when its time is over, although the name is held
// all the while. A waiter beside it that is renewed is still shown, with the time at which it came.
func tryDeadWaiterIsGone(w *world, look driver.Inspector, k kind) {
	killer, ok := w.h.(Killer)
	if !ok {
		return
	}
	h, b, a := w.actor("R"), w.actor("T"), w.unrenewed("S", w.ttl)
	holds := h.held(k.own(w.name("expiry-dead-waiter-" + k.String())))
	lives := b.queue(k.rival(holds.Name))
	came, from := shownOf(w, look, lives).Since, time.Now()
	dead := a.queue(k.rival(holds.Name))
	a.kill(killer)
	shows := func(l driver.Line) bool {
		return slices.ContainsFunc(l.Claims, func(h driver.Holder) bool { return h.PublicID == driver.PublicID(dead.ID) })
	}
	w.until(a.valid+w.traits.Grain+w.traits.Notice+w.slack()+patience, func() bool { return !shows(lineOf(w, look, holds.Name)) },
		"%s waited and its process has died, and it is shown on after its time, %v", w.trace.claim(dead), a.valid)
	if lines, err := lookAtAll(w, look, holds.Name); err == nil && slices.ContainsFunc(lines, shows) {
		w.fail("%s waited and its process has died, and Line does not show it any more, and Lines does", w.trace.claim(dead))
	}
	w.sleep(b.valid / 2)
	passed := time.Since(from)
	w.sleep(b.valid / 2) // so that it is renewed once more
	if now := shownOf(w, look, lives); now.Held || now.Since.Sub(came) >= passed {
		w.fail("%s waits in a session that is renewed, and is shown to have come at %v, and then at %v, held %v", w.trace.claim(lives), came, now.Since, now.Held)
	}
	b.release(lives)
	h.letGo(holds)
}

// What can be had again is shown as free when it was had and released.
func tryExpiredIsGone(w *world, look driver.Inspector, k kind) {
	a, b := w.unrenewed("U", w.ttl), w.actor("V")
	var earlier []driver.Claim // in the same session: when the last is over, they are
	for range 5 {
		earlier = append(earlier, a.held(k.own(w.name("expiry-dead-"+k.String()))))
	}
	mine := a.held(k.own(w.name("expiry-shown-" + k.String())))
	a.lapse()
	lineOf(w, look, mine.Name)
	w.sleep(a.valid)
	next := k.rival(mine.Name)
	w.until(a.valid+w.traits.Grain+w.slack()+patience, func() bool { return b.state(next).Held },
		"%s cannot be had long after the time of %s", w.trace.claim(next), w.trace.claim(mine))
	tryDeadAreNotShown(w, look, k, b, earlier)
	b.letGo(next)
	if l := lineOf(w, look, mine.Name); len(l.Claims) > 0 {
		w.fail("the time of %s is over and %s was released, and the line is shown with %+v", w.trace.claim(mine), w.trace.claim(next), l.Claims)
	}
}

// What is shown with an end, and can be had as soon as somebody asks, has ended before: the store
// knew. One of several may have ended between the look and the Acquire.
func tryDeadAreNotShown(w *world, look driver.Inspector, k kind, b *actor, dead []driver.Claim) {
	var shown []string
	for _, c := range dead {
		l := lineOf(w, look, c.Name)
		next := k.rival(c.Name)
		if !b.state(next).Held {
			return // it stands there, late by no more than Grain, or nobody knows yet
		}
		b.letGo(next)
		if len(l.Claims) > 0 && !l.Claims[0].Until.IsZero() {
			shown = append(shown, w.trace.claim(c))
		}
	}
	if len(shown) == len(dead) {
		w.fail("claims are shown with an end that is over, and whoever comes is let in past them: %s", strings.Join(shown, "; "))
	}
}

// A claim that has outlived what was shown as its end is shown to end later.
func tryRenewedIsShown(w *world, look driver.Inspector, k kind) {
	a := w.actor("W")
	mine := a.held(k.own(w.name("expiry-moved-" + k.String())))
	first := shownOf(w, look, mine)
	w.sleep(a.valid * 5 / 4)
	a.renewInTime(mine)
	again := shownOf(w, look, mine)
	if !first.Until.IsZero() && !again.Until.IsZero() && !again.Until.After(first.Until) {
		w.fail("%s is shown to end at %v, and after %v of renewals at %v", w.trace.claim(mine), first.Until, a.valid*5/4, again.Until)
	}
	a.letGo(mine)
}

// Who follows a line sees an expiry, too, also where nobody else stands there.
func tryExpiryIsWatched(w *world, k kind) {
	d, ok := w.process("follower").d.(driver.Watcher)
	if !ok {
		return
	}
	a := w.unrenewed("X", w.ttl)
	mine := a.held(k.own(w.name("expiry-watched-" + k.String())))
	a.lapse()
	ctx, cancel := context.WithTimeout(w.ctx, a.valid+w.traits.Grain+w.slack()+patience)
	defer cancel()
	free, err := ask(ctx, w.trial, "follower", func(ctx context.Context) (bool, error) {
		for l, err := range d.Watch(ctx, mine.Name) {
			if err != nil {
				return false, err
			}
			w.trace.add(time.Now(), "follower", "sees %d claims in line", len(l.Claims))
			if len(l.Claims) == 0 {
				return true, nil
			}
		}
		return false, nil
	}, nil)
	switch {
	case free || w.ctx.Err() != nil:
	case ctx.Err() != nil:
		w.failLate("the watch of %s does not show that its time is over", w.trace.claim(mine))
	default:
		w.fail("the watch of %s ended before it showed that its time is over: %v", w.trace.claim(mine), err)
	}
}
