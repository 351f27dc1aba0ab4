package drivertest

import "github.com/interlock-go/interlock/driver"

// A Renew that is under way together with other calls, begun before or after them, names no claim
// that is just leaving the line and none that is just coming.
func tryRenewBeside(x *losers, k kind) {
	w, a := x.w, x.a
	st, ok := w.h.(Staller)
	if !ok {
		return // Also_Contexts says so
	}
	for _, renewFirst := range []bool{true, false} {
		leaves := a.held(k.own(w.name("lost-leaves-" + k.String())))
		comes := k.own(w.name("lost-comes-" + k.String()))
		old := queued(k.own(w.name("lost-requeued-" + k.String())))
		next := queued(k.own(old.Name))
		a.hold(old)
		x.fate[leaves.ID], x.fate[comes.ID] = "was being released", "was being acquired"
		x.fate[old.ID], x.fate[next.ID] = "was being requeued", "was being acquired by a Requeue"
		calls := []func(){ // whatever becomes of them: all are released
			func() { _, _ = a.tryRelease(w.ctx, leaves) },
			func() { _, _ = a.tryAcquire(w.ctx, comes) },
		}
		if _, ok := a.s.(driver.Requeuer); ok {
			calls = append(calls, func() { _, _ = a.tryRequeue(w.ctx, old, next) })
		}
		var answer driver.Renewal
		renew := []func(){func() { answer, _ = a.tryRenew(w.ctx) }}
		order := [][]func(){calls, renew}
		if renewFirst {
			order = [][]func(){renew, calls}
		}
		var under []*task
		heal := a.stalled(st, Replies)
		for _, some := range order {
			for _, call := range some {
				under = append(under, w.start(call))
			}
			w.sleep(underWay)
		}
		heal()
		for _, t := range under {
			t.wait()
		}
		for _, l := range answer.Lost {
			x.may(a, "Renew", "calls that were under way with it", l, nil)
		}
		for _, c := range []driver.Claim{leaves, comes, old, next} {
			a.release(c)
		}
	}
	x.lose("a Renew with which other calls were under way")
}
