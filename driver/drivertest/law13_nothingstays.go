package drivertest

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

var nothingStaysLaw = Law{
	Name: "Law13_NothingStays",
	Says: "After an Acquire that was cancelled or timed out, with any of its requests under way, and a Release afterwards, nothing of the claim stays longer than a " +
		"second once the store is reachable; and a claim whose Release was lost is dropped by the session's next Renew.",
	try: tryNothingStays,
}

func tryNothingStays(w *world) {
	w.parts(
		tryCancelled,
		func(w *world) { w.eachKind(tryTimedOut) },
		func(w *world) { w.eachKind(tryReleaseLost) },
		func(w *world) { w.eachKind(tryOvertaken) },
	)
}

// staysFree insists that a can hold the names at once: a request that straggled in after its
// claim's Release would have taken one for nobody.
func (a *actor) staysFree(names map[string]kind) {
	for name, k := range names {
		c := k.rival(name)
		if g := a.state(c); !g.Held {
			a.w.fail("%s was free and is taken again although nobody asked for it: a request straggled in after the Release", a.w.trace.name(name))
		}
		a.release(c)
	}
}

// An Acquire that is cancelled before, while or after it is sent, for a free name and for one that
// is held.
func tryCancelled(w *world) {
	a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
	names := map[string]kind{}
	ks := w.kinds()
	for i := range 40 {
		k := ks[i/4%len(ks)]
		name := w.name("cancelled")
		names[name] = k
		var holds driver.Claim
		if i%2 == 1 {
			holds = b.held(k.rival(name))
		}
		c := k.own(name)
		c.Queue = i%4 < 2
		ctx, cancel := context.WithTimeout(w.ctx, time.Duration(w.intN(1+10*i))*time.Microsecond)
		if i == 0 {
			cancel()
		}
		_, _ = a.tryAcquire(ctx, c) // whatever became of it
		cancel()
		a.release(c)
		if i%2 == 1 {
			b.letGo(holds)
		}
		b.free(k, name, "after its only other claim was cancelled and released")
		w.renewBoth(i, a, b)
	}
	w.sleep(straggle)
	b.staysFree(names)
}

// An Acquire that times out because the wire is stalled, in either way, and is released when the
// wire is healed.
func tryTimedOut(w *world, k kind) {
	st, ok := w.h.(Staller)
	if !ok {
		w.lacks("Staller", "what stays after an Acquire that timed out on a stalled wire")
		return
	}
	names := map[string]kind{}
	b := w.actor("B")
	for _, way := range []Way{BothWays, Replies} {
		for _, busy := range []bool{false, true} {
			a := w.unrenewed("A", w.long())
			name := w.name("timed-out-" + k.String())
			names[name] = k
			c := queued(k.own(name))
			var holds driver.Claim
			if busy {
				holds = b.held(k.rival(name))
			}
			heal := a.stalled(st, way)
			a.timesOut("Acquire", a.acquiring(c))
			ctx, cancel := context.WithTimeout(w.ctx, min(50*time.Millisecond, a.valid/20))
			_, _ = a.tryRelease(ctx, c) // a driver that knows that nothing left may answer without the store
			cancel()
			heal()
			a.release(c)
			if busy {
				b.letGo(holds)
			}
			b.free(k, name, "after its only other claim timed out and was released when the wire was healed")
		}
	}
	w.sleep(straggle)
	b.staysFree(names)
}

// A Release that never arrived, or whose reply did not, and that nobody repeats.
func tryReleaseLost(w *world, k kind) {
	st, ok := w.h.(Staller)
	if !ok {
		return // said above
	}
	for _, way := range []Way{BothWays, Replies} {
		a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
		name := w.name("release-lost-" + k.String())
		c := a.held(k.own(name))
		other := a.held(k.own(w.name("release-lost-other")))
		heal := a.stalled(st, way)
		a.timesOut("Release", a.releasing(c))
		heal()
		a.renewInTime(other)
		b.free(k, name, "after the Release of a "+k.String()+" was lost and the session was renewed")
		if !a.state(other).Held {
			w.fail("%s is gone after the Release of another claim was lost", w.trace.claim(other))
		}
		a.letGo(other)
	}
}
