package drivertest

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// actor is a session of a process, which makes calls for a law. Its methods that return no error
// end the trial when one comes.
type actor struct {
	lease

	w     *trial
	p     *process
	name  string
	spec  driver.Spec
	s     driver.Session
	asked time.Time     // when Open was called
	valid time.Duration // what Open gave

	stop context.CancelFunc
}

// open returns another session of p that nobody renews.
func (p *process) open(name string, ttl time.Duration) *actor {
	return p.openAs(name, ttl, driver.Owner{Name: "drivertest " + name, Host: "host-" + name, PID: 4711, Program: "suite"})
}

// openAs is open for an owner.
func (p *process) openAs(name string, ttl time.Duration, owner driver.Owner) *actor {
	a := &actor{w: p.w, p: p, name: name}
	a.spec = driver.Spec{ID: driver.NewID(), TTL: ttl, Owner: owner}
	a.asked = time.Now()
	s, err := call(a.w.ctx, a, func(ctx context.Context) (driver.Session, error) {
		s, err := p.d.Open(ctx, a.spec)
		a.w.answered(a.asked, err)
		return s, err
	},
		func(s driver.Session, err error) string {
			if err != nil {
				return "Open → error: " + p.w.trace.err(err)
			}
			return "Open(TTL " + ttl.String() + ") → valid " + s.Valid().String()
		})
	if err != nil {
		p.w.fail("%s could not open a session: %v", name, err)
	}
	a.s, a.valid = s, s.Valid()
	if a.valid <= 0 {
		p.w.fail("a session with a TTL of %v is valid for %v: want more than 0", ttl, a.valid)
	}
	a.begin(a.asked, a.valid)
	p.w.opened(a)
	return a
}

// kill ends the process of a as SIGKILL does.
func (a *actor) kill(killer Killer) {
	a.p.gone = true
	a.lapse()
	killer.Kill(a.w.t, a.p.d)
	a.w.trace.add(time.Now(), a.name, "is killed")
}

// keepRenewing renews the session in the background, as the core does, until the trial or
// stopRenewing ends it.
func (a *actor) keepRenewing() *actor {
	ctx, stop := context.WithCancel(a.w.ctx)
	a.stop = stop
	a.w.start(func() {
		for from := a.asked; ; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Until(from.Add(a.pace()))):
			}
			a.overdue()
			from = time.Now()
			within, cancel := context.WithTimeout(ctx, 3*a.pace())
			r, err := call(within, a, a.s.Renew, nil)
			if err != nil && within.Err() != nil {
				err = unanswered{err}
			}
			cancel()
			if ctx.Err() != nil {
				return
			}
			if err != nil || len(r.Lost) > 0 {
				a.w.trace.add(time.Now(), a.name, "Renew in the background → %s", a.renewal(r, err))
			}
			a.note(from, r, err)
		}
	})
	return a
}

// renewIfDue renews a session that nobody keeps, as often as keepRenewing would.
func (a *actor) renewIfDue() {
	if a.due() {
		a.renew()
	}
}

// stopRenewing ends keepRenewing.
func (a *actor) stopRenewing() {
	if a.stop != nil {
		a.stop()
	}
}

// overdue notes if the session's time is over although it was to live.
func (a *actor) overdue() {
	if late := a.over(); late >= 0 {
		a.w.overran(a.name, late)
	}
}

// note remembers the answer to a Renew that was called at from.
func (a *actor) note(from time.Time, r driver.Renewal, err error) {
	if err == nil {
		a.overdue() // when it was answered
	}
	a.renewed(from, r, err)
}

// hears notes what the session's channel of losses says until the trial ends.
func (a *actor) hears() {
	_, lost := a.channels()
	if lost == nil {
		return
	}
	a.w.start(func() {
		for {
			select {
			case <-a.w.ctx.Done():
				return
			case l, open := <-lost:
				if !open {
					return
				}
				a.w.trace.add(time.Now(), a.name, "is told: %s", a.w.trace.loss(l))
				a.loses(l)
			}
		}
	})
}

// call makes one call of a's session and writes it down.
func call[R any](ctx context.Context, a *actor, f func(context.Context) (R, error), what func(R, error) string) (R, error) {
	defer a.back()
	return ask(ctx, a.w, a.name, f, what)
}

// tryAcquire is Acquire as the driver answers it.
func (a *actor) tryAcquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return call(ctx, a, func(ctx context.Context) (driver.Grant, error) {
		from := time.Now()
		g, err := a.s.Acquire(ctx, c)
		a.w.answered(from, err)
		return g, err
	},
		func(g driver.Grant, err error) string {
			return "Acquire(" + a.w.trace.claim(c) + ") → " + a.w.trace.grant(g, err)
		})
}

// tryWait is Wait as the driver answers it.
func (a *actor) tryWait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return call(ctx, a, func(ctx context.Context) (driver.Grant, error) { return a.s.Wait(ctx, c) },
		func(g driver.Grant, err error) string {
			return "Wait(" + a.w.trace.label(c.ID) + ") → " + a.w.trace.grant(g, err)
		})
}

// tryRelease is Release as the driver answers it.
func (a *actor) tryRelease(ctx context.Context, c driver.Claim) (bool, error) {
	return call(ctx, a, func(ctx context.Context) (bool, error) {
		from := time.Now()
		held, err := a.s.Release(ctx, c)
		a.w.answered(from, err)
		return held, err
	},
		func(held bool, err error) string {
			switch {
			case err != nil:
				return "Release(" + a.w.trace.label(c.ID) + ") → error: " + a.w.trace.err(err)
			case held:
				return "Release(" + a.w.trace.label(c.ID) + ") → was held"
			}
			return "Release(" + a.w.trace.label(c.ID) + ") → was not held"
		})
}

// requeued is the answer to a Requeue.
type requeued struct {
	driver.Grant
	held bool // the old claim, until now
}

func (a *actor) tryRequeue(ctx context.Context, old, next driver.Claim) (requeued, error) {
	return call(ctx, a, func(ctx context.Context) (requeued, error) {
		g, held, err := a.s.(driver.Requeuer).Requeue(ctx, old, next)
		return requeued{g, held}, err
	}, func(r requeued, err error) string {
		text := "Requeue(" + a.w.trace.label(old.ID) + ", " + a.w.trace.claim(next) + ") → " + a.w.trace.grant(r.Grant, err)
		if err == nil && !r.held {
			text += ", and " + a.w.trace.label(old.ID) + " was not held"
		}
		return text
	})
}

// tryRenew is Renew as the driver answers it.
func (a *actor) tryRenew(ctx context.Context) (driver.Renewal, error) {
	from := time.Now()
	r, err := call(ctx, a, a.s.Renew, func(r driver.Renewal, err error) string { return "Renew → " + a.renewal(r, err) })
	a.note(from, r, err)
	return r, err
}

func (a *actor) renewal(r driver.Renewal, err error) string {
	if err != nil {
		return "error: " + a.w.trace.err(err)
	}
	text := "valid " + r.Valid.String()
	for _, l := range r.Lost {
		text += ", " + a.w.trace.loss(l)
	}
	return text
}

// tryClose is Close as the driver answers it.
func (a *actor) tryClose() error {
	a.stopRenewing()
	a.lapse()
	_, err := call(a.w.ctx, a, func(ctx context.Context) (struct{}, error) { return struct{}{}, a.s.Close(ctx) },
		func(_ struct{}, err error) string {
			if err != nil {
				return "Close → error: " + a.w.trace.err(err)
			}
			return "Close"
		})
	return err
}

// state returns what Acquire answers.
func (a *actor) state(c driver.Claim) driver.Grant {
	g, err := a.tryAcquire(a.w.ctx, c)
	if err != nil {
		a.w.fail("%s asked for %s and got an error although nothing was wrong: %v", a.name, a.w.trace.claim(c), err)
	}
	return g
}

// hold acquires c, which is free.
func (a *actor) hold(c driver.Claim) driver.Grant {
	g := a.state(c)
	if !g.Held {
		a.w.fail("%s was not given %s, which nothing stands in the way of", a.name, a.w.trace.claim(c))
	}
	return g
}

// held acquires c, which is free, and returns it.
func (a *actor) held(c driver.Claim) driver.Claim {
	a.hold(c)
	return c
}

// queue puts c into a line behind others.
func (a *actor) queue(c driver.Claim) driver.Claim {
	c.Queue = true
	if g := a.state(c); g.Held {
		a.w.fail("%s holds %s, although others are in the way", a.name, a.w.trace.claim(c))
	}
	return c
}

// denied tries c, which others are in the way of.
func (a *actor) denied(c driver.Claim) {
	c.Queue = false
	if g := a.state(c); g.Held {
		a.w.fail("%s was given %s, although others are in the way", a.name, a.w.trace.claim(c))
	}
}

// await calls Wait until c is held, as the core does, for at most within, or longer where this
// process did not run.
func (a *actor) await(c driver.Claim, within time.Duration) driver.Grant {
	return a.awaitAfter(c, within, "")
}

// awaitAfter is await for a report that says after what c should be held.
func (a *actor) awaitAfter(c driver.Claim, within time.Duration, what string) driver.Grant {
	if what != "" {
		what = " after " + what
	}
	from := time.Now()
	for range manyTurns {
		ctx, cancel := context.WithDeadline(a.w.ctx, from.Add(within+a.w.lateness()))
		g, err := a.tryWait(ctx, c)
		over := ctx.Err() != nil
		cancel()
		switch {
		case !over && err == nil && g.Held:
			return g
		case over && a.w.ctx.Err() == nil && time.Since(from) < within+a.w.lateness(): // it was late meanwhile
		case over: // held or not, it comes too late
			a.w.failLate("%s waited %v for %s and was not told that it holds%s", a.name, within, a.w.trace.claim(c), what)
		case err != nil:
			a.w.fail("Wait of %s for %s failed although nothing was wrong: %v", a.name, a.w.trace.claim(c), err)
		}
	}
	a.w.fail("Wait of %s for %s came back %d times with nothing new: it spins instead of waiting", a.name, a.w.trace.claim(c), manyTurns)
	return driver.Grant{}
}

// release releases c and reports whether it was held.
func (a *actor) release(c driver.Claim) bool {
	held, err := a.tryRelease(a.w.ctx, c)
	if err != nil {
		a.w.fail("%s could not release %s although nothing was wrong: %v", a.name, a.w.trace.claim(c), err)
	}
	return held
}

// letGo releases c, which is held.
func (a *actor) letGo(c driver.Claim) {
	if !a.release(c) {
		a.w.fail("%s released %s and was told that it had not been held", a.name, a.w.trace.claim(c))
	}
}

// requeue leaves with old, which is held, and stands in line again with next.
func (a *actor) requeue(old, next driver.Claim) driver.Grant {
	r, err := a.tryRequeue(a.w.ctx, old, next)
	if err != nil {
		a.w.fail("%s could not requeue %s although nothing was wrong: %v", a.name, a.w.trace.label(old.ID), err)
	}
	if !r.held {
		a.w.fail("Requeue said of %s, which was held, that it had not been", a.w.trace.label(old.ID))
	}
	return r.Grant
}

// renew renews and insists on success.
func (a *actor) renew() driver.Renewal {
	r, err := a.tryRenew(a.w.ctx)
	if err != nil {
		a.w.fail("%s could not renew although nothing was wrong: %v", a.name, err)
	}
	return r
}

// renewInTime renews and insists that the claim is not reported lost.
func (a *actor) renewInTime(c driver.Claim) {
	for _, lost := range a.renew().Lost {
		if lost.ID == c.ID {
			a.w.fail("Renew says that %s is lost although it was neither released nor broken and its session was renewed in time", a.w.trace.claim(c))
		}
	}
}

// close ends the session.
func (a *actor) close() {
	if err := a.tryClose(); err != nil {
		a.w.fail("%s could not close its session although nothing was wrong: %v", a.name, err)
	}
}

// channels returns the session's channels of nudges and losses, nil where it has none.
func (a *actor) channels() (nudge <-chan struct{}, lost <-chan driver.Loss) {
	if n, ok := a.s.(driver.Nudger); ok {
		nudge = n.Nudge()
	}
	if l, ok := a.s.(driver.LossNotifier); ok {
		lost = l.Lost()
	}
	return nudge, lost
}
