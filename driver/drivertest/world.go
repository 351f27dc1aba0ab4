package drivertest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// world is what a law sees: a trial, the processes and sessions that take part in it, and the kinds
// of claims that the store has.
type world struct {
	*trial
	processes []*process // guarded by mu of the trial
}

func newWorld(t T, h Harness, law, says string, attempt int, ttl time.Duration) *world {
	w := &world{trial: newTrial(t, h, law, says, attempt)}
	w.traits = w.process("probe").d.Traits()
	w.ttl = w.clamp(ttl)
	w.start(func() { w.watchClock(w.ctx) })
	return w
}

// probe finds out how long a long session really is.
func (w *world) probe() {
	a := w.processes[0].open("probe", w.long())
	w.longValid = a.valid
	a.close()
}

// process opens the store once more, as another process would.
func (w *world) process(name string) *process {
	p := &process{w: w.trial, name: name, d: w.h.Driver(w.t)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.processes = append(w.processes, p)
	return p
}

// actor returns a session in a process of its own, kept alive until the trial ends.
func (w *world) actor(name string) *actor {
	a := w.unrenewed(name, w.ttl)
	a.keepRenewing()
	return a
}

// unrenewed returns a session in a process of its own that nobody renews.
func (w *world) unrenewed(name string, ttl time.Duration) *actor {
	return w.process(name).open(name, ttl)
}

// kinds are those that the traits allow.
func (w *world) kinds() []kind { return kindsOf(w.traits) }

// eachKind tries something of each kind at the same time, with names and sessions of its own.
func (w *world) eachKind(try func(w *world, k kind)) {
	var fs []func()
	for _, k := range w.kinds() {
		fs = append(fs, func() { try(w, k) })
	}
	w.apart(fs...)
}

// parts tries one part of a law after the other. A session of a part that is over excuses nothing
// any more.
func (w *world) parts(parts ...func(*world)) {
	for _, part := range parts {
		part(w)
		for _, s := range w.all() {
			s.stopRenewing()
			s.lapse()
		}
	}
}

// restart restarts the store. A driver that was opened before may have connections that the restart
// has cut, and may say so when it is closed.
func (w *world) restart(r Restarter) {
	from := time.Now()
	w.mu.Lock()
	for _, p := range w.processes {
		p.gone = true
	}
	w.mu.Unlock()
	r.Restart(w.t)
	w.trace.add(from, "store", "is restarted")
}

// end stops everything that the trial began and closes every driver. It returns the first failure
// of that.
func (w *world) end() (failed *failure) {
	w.cancel()
	w.running.Wait()
	w.mu.Lock()
	processes := w.processes
	w.mu.Unlock()
	// All at the same time: where a part of the store does not answer, each may take seconds.
	closing := make([]*task, len(processes))
	for i, p := range processes {
		closing[i] = w.start(func() {
			if err := p.close(context.Background()); err != nil && !p.gone {
				w.fail("Close of the driver of %s failed although nothing was wrong: %v", p.name, err)
			}
		})
	}
	for _, t := range closing {
		if <-t.done; failed == nil {
			failed = t.failed
		}
	}
	return failed
}

// show adds to the trace how the driver shows the lines that a failure names.
func (w *world) show(what string) {
	p := w.processes[0]
	look, ok := p.d.(driver.Inspector)
	w.mu.Lock()
	names := w.names
	w.mu.Unlock()
	for _, name := range names {
		if label := w.trace.name(name); ok && strings.Contains(what, label) {
			_, _ = ask(context.WithoutCancel(w.ctx), w.trial, p.name, func(ctx context.Context) (driver.Line, error) { return look.Line(ctx, name) },
				func(l driver.Line, err error) string {
					return fmt.Sprintf("Line(%s) → token %d, claims %+v, error %v", label, l.Fence, l.Claims, err)
				})
		}
	}
}

// renewBoth keeps a store happy whose longest time is short, between rounds and never during one.
func (w *world) renewBoth(round int, actors ...*actor) {
	if round%10 == 9 {
		for _, a := range actors {
			a.renew()
		}
	}
}

// manyClaims is how many claims a session has that has many: more than any page, batch or buffer of
// a round number.
const manyClaims = 250

// manyAtOnce is how many share one name, or wait for it: more than a page has, or a record of a
// round number has room for.
const manyAtOnce = 120
