package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// What is tried of a call that consists of several requests, as of one that loads a row and swaps it: each of them may be the one
// that arrives when its call was given up.

// mostRequests bounds the requests of one call that are tried.
const mostRequests = 8

// straggling lets n requests of a's process pass and holds the one after them.
func (a *actor) straggling(n int) (deliver func()) {
	do := a.w.h.(Straggler).Straggle(a.w.t, a.p.d, n)
	a.w.story.add(time.Now(), "wire", "of %s: request %d from now on is held, and others pass", a.name, n+1)
	return func() {
		what := "of %s: nothing was held"
		if do() {
			what = "of %s: the request that was held arrives"
		}
		a.w.story.add(time.Now(), "wire", what, a.name)
	}
}

// briefly calls f with a context that ends soon.
func (a *actor) briefly(f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(a.w.ctx, min(50*time.Millisecond, a.valid/20))
	defer cancel()
	return f(ctx)
}

// eachRequest calls try with 0, 1, 2, … until it reports that the call was answered, so that it has no more requests.
func eachRequest(try func(n int) (answered bool)) {
	for n := range mostRequests {
		if try(n) {
			return
		}
	}
}

// An Acquire that is given up with any of its requests under way, and whose Release overtakes it.
func tryOvertaken(w *world, k kind) {
	if _, ok := w.h.(Straggler); !ok {
		w.lacks("Straggler", "what stays after an Acquire whose later request straggles in behind its Release")
		return
	}
	b := w.actor("B")
	var after []func()
	for _, busy := range []bool{false, true} {
		eachRequest(func(n int) (answered bool) {
			a := w.still("A", w.long())
			c := queued(k.own(w.name("overtaken-" + k.String())))
			var holds driver.Claim
			if busy {
				holds = b.held(k.rival(c.Name))
			}
			deliver := a.straggling(n)
			answered = a.briefly(func(ctx context.Context) error { _, err := a.tryAcquire(ctx, c); return err }) == nil
			// A Release that waits for the answer to the Acquire, or stands behind it, is not answered now.
			left := a.briefly(func(ctx context.Context) error { _, err := a.tryRelease(ctx, c); return err }) == nil
			deliver()
			if !left {
				a.release(c)
			}
			after = append(after, func() {
				if busy {
					b.letGo(holds)
				}
				b.free(k, c.Name, "after its only other claim was released while a request of its Acquire was under way")
			})
			return answered
		})
	}
	w.sleep(straggle) // nobody touches the names before the requests have arrived
	for _, see := range after {
		see()
	}
}

// The error of a call says no more than is known, whichever of its requests is under way.
func tryLaterRequest(w *world, k kind) {
	a, b := w.still("A", w.long()), w.still("B", w.long())
	// notSent makes a call whose n-th request is held. It reports whether the call was answered, and else, when the request
	// has arrived, whether its error says that nothing was changed.
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
		answered, none := notSent(n, "Acquire", func(ctx context.Context) error { _, err := a.tryAcquire(ctx, c); return err })
		if none {
			b.unchanged(k, c, "Acquire")
		}
		a.release(c)
		return answered
	})
	eachRequest(func(n int) bool {
		c := a.held(k.own(w.name("outcome-later-release-" + k.String())))
		next := b.queue(k.rival(c.Name))
		answered, none := notSent(n, "Release", func(ctx context.Context) error { _, err := a.tryRelease(ctx, c); return err })
		if none && b.state(next).Held {
			w.fail("the error of Release says that nothing was changed, and %s was let in", w.story.claim(next))
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
		answered, none := notSent(n, "Requeue", func(ctx context.Context) error { _, err := a.tryRequeue(ctx, old, again); return err })
		if none && b.state(next).Held {
			w.fail("the error of Requeue says that nothing was changed, and %s was let in", w.story.claim(next))
		}
		a.release(old)
		a.release(again)
		b.await(next, w.atOnce())
		b.letGo(next)
		return answered
	})
}
