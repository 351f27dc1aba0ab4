package drivertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// tick is how often the trial looks whether this process still runs.
const tick = 20 * time.Millisecond

// watchClock notes how late its ticks come.
func (w *world) watchClock() {
	for {
		from := time.Now()
		select {
		case <-w.ctx.Done():
			return
		case <-time.After(tick):
		}
		late := time.Since(from) - tick
		w.mu.Lock()
		w.late = max(w.late, late)
		w.mu.Unlock()
	}
}

// lateness returns the longest time for which this process has been kept from running so far.
func (w *world) lateness() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.late
}

// slack is added to every upper bound on time: what the harness says of its machine, and what was seen of it.
func (w *world) slack() time.Duration { return w.machine + w.lateness() }

// tooSlow ends the trial: what it was about to show can no longer be seen.
func (w *world) tooSlow(what string) {
	panic(w.failed(&failure{what: what + ": too late to show anything", void: what}))
}

// void returns why a fault that is found now proves nothing, or "": the process did not run for longer than sessions can
// bear, or the suite has left a session without a Renew until its time was over.
func (w *world) void() string {
	w.mu.Lock()
	actors := w.actors
	w.mu.Unlock()
	for _, a := range actors {
		a.overdue()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tooLate == "" && w.late >= w.ttl/bears {
		return fmt.Sprintf("this process did not run for %v, with sessions of %v", w.late, w.ttl)
	}
	return w.tooLate
}

// bears is how often a session's time is longer than what this process may not run meanwhile.
const bears = 5

// needs is a time for sessions that bears twice of what was seen of the machine.
func (w *world) needs() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(2*bears*w.late, 2*(w.ttl+w.overdue))
}

// answered notes how long the store took to answer a call, begun at from, that nothing holds up.
func (w *world) answered(from time.Time, err error) {
	took := time.Since(from)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.slowest = max(w.slowest, took)
	}
}

// failLate is fail for what did not come in time: where the store needs a second for an answer, nobody knows what time it needs.
func (w *world) failLate(format string, args ...any) {
	w.mu.Lock()
	if w.tooLate == "" && w.slowest >= patience/10 {
		w.tooLate = fmt.Sprintf("the store took %v for an answer", w.slowest)
	}
	w.mu.Unlock()
	w.fail(format, args...)
}

// overdue notes if the session's time is over although it was to live.
func (a *actor) overdue() {
	a.mu.Lock()
	late := time.Since(a.until)
	lapses := a.lapses || a.refused
	a.mu.Unlock()
	if late < 0 || lapses {
		return
	}
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	a.w.overdue = max(a.w.overdue, late)
	if a.w.tooLate == "" {
		a.w.tooLate = fmt.Sprintf("the time of %s's session was over for %v without a Renew", a.name, late)
	}
}

// lapse says that nobody is to renew the session any more, so that its end is no accident.
func (a *actor) lapse() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lapses = true
}

// unanswered is an error of a driver that gave the store less time than it was given itself. It tells nothing of a law.
type unanswered struct{ error }

func (u unanswered) Unwrap() error { return u.error }

// tardy is how long no store takes to refuse something: whoever comes back with an error later has waited for an answer.
const tardy = 200 * time.Millisecond

// noAnswer reports whether an error is none that the contract knows, which would be the store's answer.
func noAnswer(err error) bool {
	for _, answer := range []error{nil, driver.ErrSessionLost, driver.ErrGone, driver.ErrRefused, driver.ErrBroken} {
		if errors.Is(err, answer) {
			return false
		}
	}
	return true
}

// timedOut reports whether an error says that time was over.
func timedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}
