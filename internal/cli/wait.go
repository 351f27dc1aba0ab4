package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/guard"
	"github.com/interlock-go/interlock/internal/guard/nogc"
)

// startGuard starts a guard. That takes some milliseconds, in which the store is opened and the lock waited for; then
// starting has an answer.
func (j *job) startGuard() {
	j.guard, j.starting = nil, make(chan error, 1)
	starting := j.starting
	if j.client != nil {
		go func() {
			g, err := guard.Start(guard.Config{PauseGC: nogc.Pause})
			j.guard = g // read after the answer was received
			starting <- err
		}()
		return
	}
	if a := guard.TakeAhead(); a != nil { // the collector has its usual limits
		resume := nogc.PauseBeforeFirst()
		j.signals = a.Signals
		go func() {
			g, err := a.Started()
			resume()
			j.guard = g
			starting <- err
		}()
		return
	}
	j.signals = guard.NewSignals()
	go func() {
		j.signals.CatchStops()
		g, err := guard.Start(guard.Config{PauseGC: nogc.Pause}) // with other limits it collects already
		j.guard = g
		starting <- err
		j.signals.CatchAll() // while the guard begins
	}()
}

// wait waits for the lock and for the guard. A signal that would end a process ends the wait; others are answered, or
// kept for the command.
func (j *job) wait(ctx context.Context) (lease *interlock.Lease, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	locking, caught := make(chan error, 1), j.signals.All
	patience := time.NewTimer(time.Second)
	defer patience.Stop()
	fail := func(e error) {
		if err == nil && e != nil {
			err = e
			cancel()
		}
	}
	for left := 2; left > 0; {
		select {
		case <-caught: // and with the lock there is something to lose
			caught = nil
			go func() {
				l, err := j.lock(ctx)
				lease = l
				locking <- err
			}()
		case e := <-j.starting:
			left--
			fail(e)
		case e := <-locking:
			left--
			fail(j.inTheWay(e))
		case s := <-j.signals.C:
			fail(j.whileWaiting(s))
		case <-patience.C:
			if !j.sayWhoWaits(ctx) {
				patience.Reset(time.Second)
			}
		}
	}
	return lease, err
}

// whileWaiting does what a signal asks for while there is no command, and returns an error when that is to end.
func (j *job) whileWaiting(s os.Signal) error {
	sig, ok := s.(syscall.Signal)
	switch {
	case ok && guard.Ends(sig):
		return &commandError{status: 128 + int(sig), by: sig}
	case ok && guard.Stops(sig):
		guard.StopSelf(j.outside)
	default:
		j.early = append(j.early, s)
	}
	return nil
}

// sayWhoWaits tells what takes so long, to a person at a terminal or in a job's log. It reports false where the lock is about to change
// hands, and should be called again.
func (j *job) sayWhoWaits(ctx context.Context) bool {
	if j.flags.Quiet {
		return true
	}
	i, ok := j.tap.Driver.(driver.Inspector)
	if !ok {
		j.say("waiting for %q, in %s", j.name, j.store)
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	l, err := i.Line(ctx, j.name)
	if err != nil {
		return true // what is wrong with the store is said when the wait ends for it
	}
	for _, h := range l.Claims {
		if h.Held && !j.tap.owns(h) { // it may have got it and not heard of it, as when Ctrl-Z has stopped it meanwhile
			j.say("waiting: %q is %s, in %s", j.name, heldBy(&h), j.store)
			return true
		}
	}
	return false
}

// inTheWay is the error of a lock that was not acquired, for people: who has it, since when, and in which store.
func (j *job) inTheWay(err error) error {
	var held *interlock.HeldError
	switch {
	case errors.As(err, &held):
		if j.flags.Quiet {
			return &exitError{status: exitHeld}
		}
		return &exitError{exitHeld, fmt.Errorf("%q is %s, in %s", j.name, heldBy(held.Holder), j.store)}
	case errors.Is(err, interlock.ErrUnavailable):
		return storeError(inStore(err, j.store))
	case errors.Is(err, driver.ErrBroken): // an operator has taken its place in line away
		return &exitError{exitHeld, fmt.Errorf("%w, in %s", err, j.store)}
	}
	return err
}
