package drivertest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// breaker is the operator.
type breaker struct {
	w    *world
	look driver.Inspector
}

// breakerOf returns an operator that uses d, or nil and why nothing can be broken there.
func breakerOf(w *world, d driver.Driver) (br *breaker, lack string) {
	look, ok := d.(driver.Inspector)
	if !ok {
		return nil, noInspector
	}
	br = &breaker{w: w, look: look}
	if err := br.try(w.name("nobody"), driver.PublicID("nobody"), 0, true); errors.Is(err, errors.ErrUnsupported) {
		return nil, err.Error()
	}
	return br, ""
}

// try breaks a claim as named, and returns what the driver answers.
func (b *breaker) try(name, publicID string, fence uint64, now bool) error {
	_, err := ask(b.w.ctx, b.w.trial, "op", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, b.look.Break(ctx, name, publicID, fence, now)
	}, func(_ struct{}, err error) string {
		text := "done"
		if err != nil {
			text = "error: " + b.w.trace.err(err)
		}
		return fmt.Sprintf("Break(%s, %s, token %d, now %v) → %s", b.w.trace.name(name), publicID, fence, now, text)
	})
	return err
}

func (b *breaker) hits(c driver.Claim, g driver.Grant, now bool) {
	if err := b.try(c.Name, driver.PublicID(c.ID), g.Fence, now); err != nil {
		b.w.fail("Break of %s, which stands as named, failed: %v", b.w.trace.claim(c), err)
	}
}

func (b *breaker) misses(why, name, publicID string, fence uint64, now bool) {
	if err := b.try(name, publicID, fence, now); !errors.Is(err, driver.ErrRefused) {
		b.w.fail("Break of %s answered %v: want an error that matches ErrRefused", why, err)
	}
}

// hitsWaiting breaks c, which waits, with the token that it is shown with: some stores draw one
// when a claim is put in line.
func (b *breaker) hitsWaiting(c driver.Claim) {
	l, err := lookAt(b.w, b.look, c.Name)
	if err != nil {
		b.w.fail("Line(%s): %v", b.w.trace.name(c.Name), err)
	}
	var g driver.Grant
	for _, h := range l.Claims {
		if h.PublicID == driver.PublicID(c.ID) {
			g.Fence = h.Fence
		}
	}
	b.hits(c, g, false)
}

// operator returns one that can break claims, or nil where nobody can.
func (w *world) operator() *breaker {
	br, lack := breakerOf(w, w.process("operator").d)
	if br == nil {
		w.without("whether who is broken is told", lack)
	}
	return br
}

// notified insists that the owner of a broken claim learns of it: nudged, if its sessions can be,
// and by Renew; and why, if it is marked.
func (a *actor) notified(c driver.Claim, marked bool) {
	w := a.w
	nudge, lost := a.channels()
	if nudge != nil || lost != nil {
		select {
		case <-nudge:
			w.trace.add(time.Now(), a.name, "is nudged")
		case l := <-lost:
			w.trace.add(time.Now(), a.name, "is told: %s", w.trace.loss(l))
			if l.ID == c.ID {
				a.lostAs(c, l.Err, marked)
			}
		case <-time.After(w.atOnce()):
			w.fail("a %s was broken and its owner was neither nudged nor told: %s", c.Kind, w.trace.claim(c))
		}
	}
	w.until(w.atOnce(), func() bool {
		a.renew()
		return a.knowsLost(c)
	}, "a %s was broken and Renew does not name it in Lost: %s", c.Kind, w.trace.claim(c))
	if told, why := a.whyLost(c); told {
		a.lostAs(c, why, marked)
	}
	if g, err := a.tryAcquire(w.ctx, c); !errors.Is(err, driver.ErrBroken) && !errors.Is(err, driver.ErrGone) {
		w.fail("Acquire of %s, which was broken, answered %s: want an error that matches ErrBroken or ErrGone", w.trace.label(c.ID), w.trace.answer(g, err))
	}
}

// lostAs insists on the reason with which c, which was broken, was said to be lost. Of one that is
// not marked, but has left at once, a store may know no more than that it is gone.
func (a *actor) lostAs(c driver.Claim, why error, marked bool) {
	switch {
	case errors.Is(why, driver.ErrBroken):
	case marked:
		a.w.fail("%s was broken, and its session is told that it is lost for another reason: %v: want an error that matches ErrBroken", a.w.trace.claim(c), why)
	case !errors.Is(why, driver.ErrGone):
		a.w.fail("%s was broken, and its session is told that it is lost for another reason: %v: want an error that matches ErrBroken or ErrGone", a.w.trace.claim(c), why)
	}
}

// lostSilently insists that of c, which nobody broke, nothing else was said, if anything, than that
// it is gone.
func (a *actor) lostSilently(c driver.Claim) {
	if told, why := a.whyLost(c); told && (!errors.Is(why, driver.ErrGone) || errors.Is(why, driver.ErrBroken)) {
		a.w.fail("%s is gone although nobody broke it, and its session is told that it is lost for another reason: %v: want an error that matches ErrGone", a.w.trace.claim(c), why)
	}
}
