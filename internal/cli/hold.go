package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/guard"
)

// hold is a command under one lease, from its start until nothing is left of it. One goroutine,
// that of run, has all of it but the channels, and event, which the guard calls.
type hold struct {
	wanted
	lease    *interlock.Lease
	args     []string
	flags    *holdFlags
	ownStdio bool // the next term's command does not want stdin and stdout, too
	t        terminal
	tap      *tap
	renewed  renewals
	signals  *caught
	guard    *guard.Guard

	latest    int64         // the end of --max-hold less the grace, on the guard's clock; 0: none
	missed    []os.Signal   // passed on when there was no command yet, or the lock was lost
	halted    chan struct{} // the command has stopped by itself
	continued int64         // when this process was continued after that, on the guard's clock
}

// signalDelay is how long after it was continued a process may still get the Ctrl-Z that had
// stopped it.
const signalDelay = 20 * time.Millisecond

// run runs the command under the lease, and passes on what happens until nothing is left of it.
// Signals are answered from the beginning: Ctrl-Z may stop the child before it has executed the
// command, and then the start takes until fg.
func (h *hold) run() error {
	grace := h.flags.grace()
	least := grace              // a grant with less time than this is not used
	if h.flags.MaxHold != nil { // longer than the grace
		longest := *h.flags.MaxHold - grace
		h.latest = guard.Now() + int64(longest)
		least = min(least, longest/2) // no grant has more than longest
	}
	starting := make(chan error, 1)
	h.halted = make(chan struct{}, 1)
	command := guard.Command{
		Args:     h.args,
		Env:      environ(aroundLease{h.name, h.lease.Fence(), bareStore(h.store)}),
		Inherit:  h.tap.inherit(), // nobody is let in while a process that has them lives
		Deadline: h.until(),
		Least:    least,
		KillRest: h.flags.KillRest,
		OwnStdio: h.ownStdio,
		Event:    h.event,
	}
	go func() { starting <- h.guard.Run(command) }()

	var over <-chan struct{} // once it runs
	var why error            // why the lock was lost; the guard stops the command
	lost := h.lease.Context().Done()
	for {
		select {
		case err := <-starting:
			if err != nil {
				return h.notStarted(least, err)
			}
			over, h.missed = h.guard.Done(), nil
			for _, s := range h.signals.kept {
				h.pass(s)
			}
			h.signals.kept = nil
		case <-over:
			return h.end(why)
		case <-h.renewed:
			h.guard.SetDeadline(h.until())
		case <-lost:
			lost, why = nil, context.Cause(h.lease.Context())
			h.guard.Stop(guard.DeadlineAt(guard.Now(), grace))
		case <-h.halted:
			h.haltAlong(over != nil)
		case s := <-h.signals.C:
			if over == nil || why != nil {
				h.missed = append(h.missed, s)
			}
			h.pass(s)
		}
	}
}

// until returns the deadline for the command, as it is known now.
func (h *hold) until() guard.Deadline {
	// Now is read first: time that passes in between makes the deadline earlier, never later. Err
	// asks whether the machine was suspended, which Until does not.
	now := guard.Now()
	_ = h.lease.Err()
	end := now + int64(time.Until(h.lease.Until()))
	if h.latest != 0 {
		end = min(end, h.latest)
	}
	return guard.DeadlineAt(end, h.flags.grace())
}

// haltAlong stops this process where the command, which runs, is stopped now: the look and the stop
// stand as near to each other as can be, since nobody would continue this process if the command
// went on in between.
func (h *hold) haltAlong(runs bool) {
	h.tap.Lock()
	defer h.tap.Unlock()
	if runs && h.guard.Halted() {
		guard.StopSelf(nil)
		h.continued = guard.Now()
	}
}

// pass passes a signal on to the command, and stops this process along with it.
func (h *hold) pass(s os.Signal) {
	sig, ok := s.(syscall.Signal)
	if !ok {
		return
	}
	h.guard.Forward(sig)
	if guard.Stops(sig) && (h.continued == 0 || guard.Now() > h.continued+int64(signalDelay)) {
		guard.StopSelf(h.tap)
		h.guard.Continue()
	}
}

// notStarted returns why the command did not run.
func (h *hold) notStarted(least time.Duration, err error) error {
	var cannot *guard.StartError
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE): // of the guard
		return err
	case errors.As(err, &cannot):
		return &commandError{status: cannot.ExitCode(), err: fmt.Errorf("cannot execute %s: %w", cannot.Name, cannot.Err)}
	case errors.Is(err, guard.ErrLate):
		// The next grant would have no more time than this one where --max-hold was it.
		if lost := h.lease.Err(); errors.Is(lost, interlock.ErrMaxHold) || lost == nil && h.latest != 0 && guard.Now()+int64(least) >= h.latest {
			return &exitError{exitLost, fmt.Errorf("lost %q, in %s, before the command was started: %w: want a longer --max-hold; the last %v of it are the grace",
				h.name, h.store, interlock.ErrMaxHold, h.flags.grace())}
		}
		return errLate
	case errors.Is(err, guard.ErrDied):
		// Ctrl-C at the very moment when the guard was forked ends it along with this process.
		for {
			select {
			case s := <-h.signals.C:
				if err := h.signals.withoutCommand(s); err != nil {
					return err
				}
				continue
			default:
			}
			return h.lost(h.lease.Err(), true)
		}
	}
	return err
}

// end returns how the command ended. A loss counts when the command was stopped for it, or when
// others may have got in before the command's end; a command that ended by itself in time did its
// work under the lock.
func (h *hold) end(why error) error {
	state := h.guard.Wait()
	overtaken := errors.Is(why, driver.ErrGone) || errors.Is(why, driver.ErrBroken) || errors.Is(why, driver.ErrSessionLost)
	switch {
	case state.Stopped || overtaken:
		if why == nil {
			why = h.lease.Err()
		}
		return h.lost(why, state.GuardDied)
	case state.Signal != 0:
		return &commandError{status: state.ExitCode(), by: state.Signal}
	case state.Code != 0:
		return &commandError{status: state.Code}
	}
	return nil
}

// lost is the error of a command that was stopped, for a reason where one is known. That the lease
// is lost is said once.
func (h *hold) lost(why error, guardDied bool) error {
	reason := "its time was over"
	switch {
	case errors.Is(why, driver.ErrBroken):
		reason = driver.ErrBroken.Error()
	case errors.Is(why, driver.ErrGone): // all that most stores know after a break --now
		reason = "gone from the store, as by break --now"
	case why != nil:
		reason = strings.TrimPrefix(why.Error(), interlock.ErrLost.Error()+": ")
	case guardDied:
		reason = "its guard has died"
	case h.latest != 0 && guard.Now() >= h.latest: // the guard's timer came before the client's
		reason = interlock.ErrMaxHold.Error()
	}
	return &exitError{exitLost, fmt.Errorf("lost %q, in %s, and stopped the command: %s", h.name, h.store, reason)}
}

// event says what the guard reports.
func (h *hold) event(e guard.Event) {
	switch e.Kind {
	case guard.Remaining:
		h.t.say("the command has ended, but %s of it goes on: keeping %q until that has ended, too (--kill-rest would kill it)", processes(e.Pids), h.name)
	case guard.Halted:
		select {
		case h.halted <- struct{}{}:
		default:
		}
	case guard.Unkillable:
		h.t.say("no permission to kill %s of the command: keeping %q until that has ended", processes(e.Pids), h.name)
	}
}

func processes(pids []int) string {
	if len(pids) == 1 {
		return fmt.Sprintf("process %d", pids[0])
	}
	return fmt.Sprintf("a rest of %d processes, as %d,", len(pids), pids[0])
}
