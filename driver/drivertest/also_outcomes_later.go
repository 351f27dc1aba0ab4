package drivertest

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/driver"
)

// The error of a call says no more than is known, whichever of its requests is under way.
func tryLaterRequest(w *world, k kind) {
	a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
	// notSent makes a call whose n-th request is held. It reports whether the call was answered,
	// and else, when the request has arrived, whether its error says that nothing was changed.
	notSent := func(n int, what string, f func(context.Context) error) (answered, notSent bool) {
		deliver := a.straggling(n)
		err := a.briefly(f)
		deliver()
		if err == nil {
			return true, false
		}
		w.unknown(what, err)
		if notSent = errors.Is(err, driver.ErrNotSent); notSent {
			w.sleep(straggle)
		}
		return false, notSent
	}
	eachRequest(func(n int) bool {
		c := queued(k.own(w.name("outcome-later-acquire-" + k.String())))
		answered, none := notSent(n, "Acquire", a.acquiring(c))
		if none {
			b.unchanged(k, c, "Acquire")
		}
		a.release(c)
		return answered
	})
	eachRequest(func(n int) bool {
		c := a.held(k.own(w.name("outcome-later-release-" + k.String())))
		next := b.queue(k.rival(c.Name))
		answered, none := notSent(n, "Release", a.releasing(c))
		if none && b.state(next).Held {
			w.fail("the error of Release says that nothing was changed, and %s was let in", w.trace.claim(next))
		}
		a.release(c)
		b.await(next, w.atOnce())
		b.letGo(next)
		return answered
	})
	if _, ok := a.s.(driver.Requeuer); !ok {
		return
	}
	eachRequest(func(n int) bool {
		old := a.held(k.own(w.name("outcome-later-requeue-" + k.String())))
		again, next := queued(k.own(old.Name)), b.queue(k.rival(old.Name))
		answered, none := notSent(n, "Requeue", a.requeuing(old, again))
		if none && b.state(next).Held {
			w.fail("the error of Requeue says that nothing was changed, and %s was let in", w.trace.claim(next))
		}
		a.release(old)
		a.release(again)
		b.await(next, w.atOnce())
		b.letGo(next)
		return answered
	})
}
