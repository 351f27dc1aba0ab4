package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// locker waits for a lock.
type locker func(context.Context) (*interlock.Lease, error)

// waiter waits for a lock and for the guard of its command.
type waiter struct {
	wanted
	lock    locker
	t       terminal
	quiet   bool
	tap     *tap
	signals *caught
}

// wait waits for the lock and for the guard. A signal that would end a process ends the wait;
// others are answered, or kept for the command. Where it returns an error there may be a lease all
// the same.
func (w *waiter) wait(ctx context.Context, start *guardStart) (lease *interlock.Lease, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	locking, caught, started := make(chan error, 1), w.signals.All, start.done
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
				l, err := w.lock(ctx)
				lease = l
				locking <- err
			}()
		case <-started:
			left--
			started = nil
			fail(start.err)
		case e := <-locking:
			left--
			fail(w.inTheWay(e))
		case s := <-w.signals.C:
			fail(w.signals.withoutCommand(s))
		case <-patience.C:
			if !w.sayWhoHolds(ctx) {
				patience.Reset(time.Second)
			}
		}
	}
	return lease, err
}

// sayWhoHolds says what takes so long, to a person at a terminal or in a job's log. It reports
// false where the lock is about to change hands, and should be called again.
func (w *waiter) sayWhoHolds(ctx context.Context) bool {
	if w.quiet {
		return true
	}
	i, ok := w.tap.Driver.(driver.Inspector)
	if !ok {
		w.t.say("waiting for %q, in %s", w.name, w.store)
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	l, err := i.Line(ctx, w.name)
	if err != nil {
		return true // what is wrong with the store is said when the wait ends for it
	}
	for _, h := range l.Claims {
		// A claim of its own may hold before Acquire has returned, as when Ctrl-Z has stopped it
		// meanwhile.
		if h.Held && !w.tap.owns(h) {
			w.t.say("waiting: %q is %s, in %s", w.name, heldBy(&h), w.store)
			return true
		}
	}
	return false
}

// inTheWay is the error of a lock that was not acquired, for people: who has it, since when, and in
// which store.
func (w *waiter) inTheWay(err error) error {
	var held *interlock.HeldError
	switch {
	case errors.As(err, &held):
		if w.quiet {
			return &exitError{status: exitHeld}
		}
		return &exitError{exitHeld, fmt.Errorf("%q is %s, in %s", w.name, heldBy(held.Holder), w.store)}
	case errors.Is(err, interlock.ErrUnavailable):
		return storeError(inStore(err, w.store))
	case errors.Is(err, driver.ErrBroken): // an operator has taken its place in line away
		return &exitError{exitHeld, fmt.Errorf("%w, in %s", err, w.store)}
	}
	return err
}
