package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// stalled stalls the wire of a's process.
func (a *actor) stalled(st Staller, way Way) (heal func()) {
	do := st.Stall(a.w.t, a.p.d, way)
	a.w.trace.add(time.Now(), "wire", "of %s: %s", a.name, way)
	return func() {
		do()
		a.w.trace.add(time.Now(), "wire", "of %s is healed", a.name)
	}
}

// timesOut makes a call on a stalled wire, which cannot be answered.
func (a *actor) timesOut(what string, f func(context.Context) error) {
	ctx, cancel := context.WithTimeout(a.w.ctx, min(50*time.Millisecond, a.valid/20))
	defer cancel()
	if err := f(ctx); err == nil {
		a.w.fail("%s of %s was answered over a stalled wire: the harness does not stall, or the driver answers for the store", what, a.name)
	}
}

// straggling lets n requests of a's process pass and holds the one after them.
func (a *actor) straggling(n int) (deliver func()) {
	do := a.w.h.(Straggler).Straggle(a.w.t, a.p.d, n)
	a.w.trace.add(time.Now(), "wire", "of %s: request %d from now on is held, and others pass", a.name, n+1)
	return func() {
		what := "of %s: nothing was held"
		if do() {
			what = "of %s: the request that was held arrives"
		}
		a.w.trace.add(time.Now(), "wire", what, a.name)
	}
}

// mostRequests bounds the requests of one call that are tried.
const mostRequests = 8

// briefly calls f with a context that ends soon.
func (a *actor) briefly(f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(a.w.ctx, min(50*time.Millisecond, a.valid/20))
	defer cancel()
	return f(ctx)
}

// acquiring is an Acquire of c, to be made with a context that may end it; what it answers does not
// matter.
func (a *actor) acquiring(c driver.Claim) func(context.Context) error {
	return func(ctx context.Context) error { _, err := a.tryAcquire(ctx, c); return err }
}

// releasing is acquiring for Release.
func (a *actor) releasing(c driver.Claim) func(context.Context) error {
	return func(ctx context.Context) error { _, err := a.tryRelease(ctx, c); return err }
}

// requeuing is acquiring for Requeue.
func (a *actor) requeuing(old, next driver.Claim) func(context.Context) error {
	return func(ctx context.Context) error { _, err := a.tryRequeue(ctx, old, next); return err }
}

// eachRequest calls try with 0, 1, 2, … until it reports that the call was answered, so that it has
// no more requests.
func eachRequest(try func(n int) (answered bool)) {
	for n := range mostRequests {
		if try(n) {
			return
		}
	}
}

// straggle is how long a request may be under way that was given up.
const straggle = 150 * time.Millisecond

// underWay is for how long a Wait is given time to be called.
const underWay = 5 * time.Millisecond

// unanswered makes a call on a wire that is stalled meanwhile. It reports whether the error says
// that nothing was changed, of a request that has arrived if it was sent.
func (a *actor) unanswered(st Staller, way Way, what string, f func(context.Context) error) (notSent bool) {
	heal := a.stalled(st, way)
	defer heal()
	var err error
	a.timesOut(what, func(ctx context.Context) error { err = f(ctx); return err })
	a.w.unknown(what, err)
	return way == Replies && errors.Is(err, driver.ErrNotSent)
}

// unchanged insists that c, of which its owner was told that it was not sent, does not stand there.
func (a *actor) unchanged(k kind, c driver.Claim, what string) {
	w := a.w
	mine := k.rival(c.Name)
	if g := a.state(mine); !g.Held {
		w.fail("the error of %s says that nothing was changed, and %s keeps others out", what, w.trace.claim(c))
	}
	a.letGo(mine)
}

// second is the law's own bound; the harness's slack is for the machine.
const second = time.Second

// free insists that a can hold name within the law's second.
func (a *actor) free(k kind, name, after string) {
	w := a.w
	w.until(second+w.slack(), func() bool {
		c := k.rival(name)
		g := a.state(c)
		a.release(c)
		return g.Held
	}, "%s still keeps others out %s", w.trace.name(name), after)
}
