package drivertest

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/driver"
)

// What Law08_Expiry says of claims that wait.

// waitEnds insists that Wait says of c, which is gone, that it is.
func (a *actor) waitEnds(c driver.Claim) {
	w := a.w
	ctx, cancel := context.WithTimeout(w.ctx, w.atOnce()+w.lateness())
	defer cancel()
	for range manyTurns {
		g, err := a.tryWait(ctx, c)
		switch {
		case errors.Is(err, driver.ErrGone) || errors.Is(err, driver.ErrSessionLost):
			return
		case ctx.Err() != nil && w.ctx.Err() == nil:
			w.failLate("Wait of %s, which had expired, sleeps on: want an error that matches ErrGone or ErrSessionLost", w.trace.claim(c))
		case err != nil || g.Held:
			w.fail("Wait of %s, which had expired, answered %s: want an error that matches ErrGone or ErrSessionLost", w.trace.claim(c), w.trace.answer(g, err))
		}
	}
	w.fail("Wait of %s, which had expired, came back %d times with nothing new", w.trace.claim(c), manyTurns)
}

// standsOrIsGone asks for a's claim, whose time is over, when nobody but behind stands in its way.
// It is the first in line or it is gone, and it is not put there again.
func (a *actor) standsOrIsGone(waits driver.Claim, b *actor, behind driver.Claim) {
	w := a.w
	w.until(w.atOnce(), func() bool {
		g, err := a.tryAcquire(w.ctx, waits)
		if err != nil && !errors.Is(err, driver.ErrGone) && !errors.Is(err, driver.ErrSessionLost) {
			w.fail("%s waited until its time was over, and then answered %s: want an error that matches ErrGone or ErrSessionLost", w.trace.claim(waits), w.trace.answer(g, err))
		}
		if err != nil || g.Held {
			return true
		}
		if b.state(behind).Held {
			w.fail("%s had expired while it waited, and stands in line again, behind %s, which had come after it", w.trace.claim(waits), w.trace.claim(behind))
		}
		return false
	}, "%s waits although nobody stands ahead of it", w.trace.claim(waits))
}

// A claim that waits in a session that is renewed keeps its place for any number of times-to-live,
// with a Wait of it under way.
func tryWaitsLong(w *world, k kind) {
	h, a := w.actor("U"), w.unrenewed("V", w.clamp(w.ttl*3/4)).keepRenewing() // so that it is over when the other parts are
	theirs := h.held(k.rival(w.name("expiry-waits-long-" + k.String())))
	waits := a.queue(k.own(theirs.Name))
	told := w.start(func() { a.awaitAfter(waits, 4*a.valid+patience, "it had waited for more than three times its time") })
	w.sleep(a.valid * 25 / 8)
	h.letGo(theirs)
	told.wait()
	a.letGo(waits)
}

// A release lets in a waiter, whatever the time.
func tryLetsIn(w *world, k kind) {
	h, a := w.unrenewed("H2", w.long()), w.unrenewed("A2", w.long())
	theirs := h.held(k.rival(w.name("expiry-lets-in-" + k.String())))
	waits := a.queue(k.own(theirs.Name))
	h.letGo(theirs)
	a.awaitAfter(waits, w.atOnce(), "the Release of "+w.trace.claim(theirs))
	a.letGo(waits)
}
