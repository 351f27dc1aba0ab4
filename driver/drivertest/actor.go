package drivertest

import (
	"context"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// process is a driver that shares nothing with the others but the store.
type process struct {
	w    *world
	name string
	d    driver.Driver
	gone bool // killed or closed by a law, or the store was restarted, so that its Close may fail
}

func (w *world) process(name string) *process {
	p := &process{w: w, name: name, d: w.h.Driver(w.t)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.processes = append(w.processes, p)
	return p
}

// kill ends the process of a as SIGKILL does.
func (a *actor) kill(killer Killer) {
	a.p.gone = true
	a.lapse()
	killer.Kill(a.w.t, a.p.d)
	a.w.story.add(time.Now(), a.name, "is killed")
}

// close closes the driver.
func (p *process) close(ctx context.Context) error {
	_, err := ask(ctx, p.w, p.name, func(ctx context.Context) (struct{}, error) { return struct{}{}, p.d.Close(ctx) },
		func(_ struct{}, err error) string {
			if err != nil {
				return "Close of the driver → error: " + p.w.story.err(err)
			}
			return "Close of the driver"
		})
	return err
}

// actor is a session of a process. Its methods that return no error end the trial when one comes.
type actor struct {
	w     *world
	p     *process
	name  string
	spec  driver.Spec
	s     driver.Session
	asked time.Time     // when Open was called
	valid time.Duration // what Open gave

	mu          sync.Mutex
	until       time.Time     // when its time is over unless it is renewed
	given       time.Duration // for how long it was opened or renewed last
	lapses      bool          // nobody is to renew it any more
	refused     bool          // the last Renew came in time and was answered with an error or without a time
	called      time.Time     // when its last call was back
	stopKeeping context.CancelFunc
	lost        map[string]error // what Renew and the channel have said to be lost, and why
	sessionLost bool
}

// actor returns a session in a process of its own, kept alive until the trial ends.
func (w *world) actor(name string) *actor {
	a := w.still(name, w.ttl)
	a.keep()
	return a
}

// still returns a session in a process of its own that nobody renews.
func (w *world) still(name string, ttl time.Duration) *actor {
	return w.process(name).open(name, ttl)
}

// open returns another session of p that nobody renews.
func (p *process) open(name string, ttl time.Duration) *actor {
	return p.openAs(name, ttl, driver.Owner{Name: "drivertest " + name, Host: "host-" + name, PID: 4711, Program: "suite"})
}

// openAs is open for an owner.
func (p *process) openAs(name string, ttl time.Duration, owner driver.Owner) *actor {
	a := &actor{w: p.w, p: p, name: name, lost: map[string]error{}}
	a.spec = driver.Spec{ID: driver.NewID(), TTL: ttl, Owner: owner}
	a.asked = time.Now()
	s, err := call(a.w.ctx, a, func(ctx context.Context) (driver.Session, error) {
		s, err := p.d.Open(ctx, a.spec)
		a.w.answered(a.asked, err)
		return s, err
	},
		func(s driver.Session, err error) string {
			if err != nil {
				return "Open → error: " + p.w.story.err(err)
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
	a.until, a.given = a.asked.Add(a.valid), a.valid
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.w.actors = append(p.w.actors, a)
	return a
}

// call makes one call of a's session and writes it down.
func call[R any](ctx context.Context, a *actor, f func(context.Context) (R, error), what func(R, error) string) (R, error) {
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.called = time.Now()
	}()
	return ask(ctx, a.w, a.name, f, what)
}

// renewedBy returns when the session was renewed at the latest, and not before from: a store with one liveness for all claims may
// renew it along with any call.
func (a *actor) renewedBy(from time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.called.After(from) {
		return a.called
	}
	return from
}

// ask makes one call of a driver and writes it down. A call that is not back soon after its context ended breaks
// whatever law is being tried: the core relies on it everywhere. A ctx without a deadline, such as the trial's own, gets
// one that allows patience.
func ask[R any](ctx context.Context, w *world, who string, f func(context.Context) (R, error), what func(R, error) string) (R, error) {
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	type answer struct {
		r   R
		err error
	}
	from := time.Now()
	back := make(chan answer, 1)
	go func() {
		r, err := f(ctx)
		back <- answer{r, err}
	}()
	var got answer
	select {
	case got = <-back:
	case <-ctx.Done():
		bound := min(promptly, 2*time.Second+w.slack())
		select {
		case got = <-back:
		case <-time.After(bound):
			w.story.add(from, who, "a call does not return although its context has ended")
			w.fail("a call of %s was not back %v after its context had ended: each call returns promptly when its context ends", who, bound)
		}
	}
	if what != nil {
		w.story.add(from, who, "%s", what(got.r, got.err))
	}
	if ctx.Err() == nil && noAnswer(got.err) && (timedOut(got.err) || time.Since(from) >= tardy) {
		got.err = unanswered{got.err}
	}
	return got.r, got.err
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
			return "Acquire(" + a.w.story.claim(c) + ") → " + a.w.story.grant(g, err)
		})
}

// tryWait is Wait as the driver answers it.
func (a *actor) tryWait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return call(ctx, a, func(ctx context.Context) (driver.Grant, error) { return a.s.Wait(ctx, c) },
		func(g driver.Grant, err error) string {
			return "Wait(" + a.w.story.label(c.ID) + ") → " + a.w.story.grant(g, err)
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
				return "Release(" + a.w.story.label(c.ID) + ") → error: " + a.w.story.err(err)
			case held:
				return "Release(" + a.w.story.label(c.ID) + ") → was held"
			}
			return "Release(" + a.w.story.label(c.ID) + ") → was not held"
		})
}

// tryRenew is Renew as the driver answers it.
func (a *actor) tryRenew(ctx context.Context) (driver.Renewal, error) {
	from := time.Now()
	r, err := call(ctx, a, a.s.Renew, func(r driver.Renewal, err error) string { return "Renew → " + a.renewal(r, err) })
	a.note(from, r, err)
	return r, err
}

// state returns what Acquire answers.
func (a *actor) state(c driver.Claim) driver.Grant {
	g, err := a.tryAcquire(a.w.ctx, c)
	if err != nil {
		a.w.fail("%s asked for %s and got an error although nothing was wrong: %v", a.name, a.w.story.claim(c), err)
	}
	return g
}

// hold acquires c, which is free.
func (a *actor) hold(c driver.Claim) driver.Grant {
	g := a.state(c)
	if !g.Held {
		a.w.fail("%s was not given %s, which nothing stands in the way of", a.name, a.w.story.claim(c))
	}
	return g
}

// queue puts c into a line behind others.
func (a *actor) queue(c driver.Claim) driver.Claim {
	c.Queue = true
	if g := a.state(c); g.Held {
		a.w.fail("%s holds %s, although others are in the way", a.name, a.w.story.claim(c))
	}
	return c
}

// denied tries c, which others are in the way of.
func (a *actor) denied(c driver.Claim) {
	c.Queue = false
	if g := a.state(c); g.Held {
		a.w.fail("%s was given %s, although others are in the way", a.name, a.w.story.claim(c))
	}
}

// await calls Wait until c is held, as the core does, for at most within, or longer where this process did not run.
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
			a.w.failLate("%s waited %v for %s and was not told that it holds%s", a.name, within, a.w.story.claim(c), what)
		case err != nil:
			a.w.fail("Wait of %s for %s failed although nothing was wrong: %v", a.name, a.w.story.claim(c), err)
		}
	}
	a.w.fail("Wait of %s for %s came back %d times with nothing new: it spins instead of waiting", a.name, a.w.story.claim(c), manyTurns)
	return driver.Grant{}
}

// release releases c and reports whether it was held.
func (a *actor) release(c driver.Claim) bool {
	held, err := a.tryRelease(a.w.ctx, c)
	if err != nil {
		a.w.fail("%s could not release %s although nothing was wrong: %v", a.name, a.w.story.claim(c), err)
	}
	return held
}

// letGo releases c, which is held.
func (a *actor) letGo(c driver.Claim) {
	if !a.release(c) {
		a.w.fail("%s released %s and was told that it had not been held", a.name, a.w.story.claim(c))
	}
}

// renew renews and insists on success.
func (a *actor) renew() driver.Renewal {
	r, err := a.tryRenew(a.w.ctx)
	if err != nil {
		a.w.fail("%s could not renew although nothing was wrong: %v", a.name, err)
	}
	return r
}

// close ends the session.
func (a *actor) close() {
	if err := a.tryClose(); err != nil {
		a.w.fail("%s could not close its session although nothing was wrong: %v", a.name, err)
	}
}

// tryClose is Close as the driver answers it.
func (a *actor) tryClose() error {
	a.unkeep()
	a.lapse()
	_, err := call(a.w.ctx, a, func(ctx context.Context) (struct{}, error) { return struct{}{}, a.s.Close(ctx) },
		func(_ struct{}, err error) string {
			if err != nil {
				return "Close → error: " + a.w.story.err(err)
			}
			return "Close"
		})
	return err
}

// held acquires c, which is free, and returns it.
func (a *actor) held(c driver.Claim) driver.Claim {
	a.hold(c)
	return c
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
