package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/guard"
)

// job is one command under one lock: it waits, runs, renews, and lets go.
//
//	wait for the lock ──┐
//	start the guard ────┴─> run the command ──> it ends ──> release ──> exit as it did
//	                          │ lock lost ──> SIGTERM, SIGKILL, all of it over ──> exit 76
//	                          │ signal ──> passed on
type job struct {
	line  *commandLine
	t     terminal
	loud  terminal // t, also with --quiet: for what is wrong although the command runs
	name  string
	kind  driver.Kind
	limit int // of permits
	args  []string
	flags *holdFlags

	bounded  bool          // somebody has said how long to wait, and that is
	patience time.Duration // with a store that cannot be reached
	once     bool          // does not wait for the lock, and tries the store once
	store    string        // for people
	tap      *tap
	outside  sync.Locker // waits until the store is asked nothing
	renewed  renewals
	client   *interlock.Client
	lock     locker
	signals  *guard.Signals
	guard    *guard.Guard
	starting chan error  // answers when the guard has started, or not
	latest   int64       // the end of --max-hold less the grace, on the guard's clock; 0: none
	early    []os.Signal // came while waiting and are for the command
	missed   []os.Signal // passed on when there was no command yet, or the lock was lost
	again    bool        // after a loss, stand again
	told     string      // what former jobs have left running

	halted    chan struct{} // the command has stopped by itself
	continued int64         // when this process was continued after that, on the guard's clock
}

// hearing is how long after it was continued a process may hear of a Ctrl-Z that had stopped it.
const hearing = 20 * time.Millisecond

// errLate: the lock had too little time left to start the command.
var errLate = errors.New("the lock came too late to start the command")

// run runs the job once, from the wait to the release.
func (j *job) run(ctx context.Context, lock func(*interlock.Client) (locker, error)) error {
	j.startGuard()
	// A message whose reader is gone fails to be written. By default it would end this process, and so the command.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if err := j.connect(ctx, lock); err != nil {
		if guardErr := <-j.starting; guardErr == nil {
			j.guard.Close()
		}
		return err
	}
	for {
		err := j.turn(ctx)
		late := errors.Is(err, errLate) // the next grant is a new one
		if !late && (!j.again || statusOf(err) != exitLost) {
			return err
		}
		if asked := j.heed(); asked != nil {
			if !late {
				j.say("%s", oneLine(err))
			}
			return asked
		}
		if !late {
			j.say("%s; standing again", oneLine(err))
			if err := j.pause(); err != nil {
				return err
			}
		}
		j.startGuard()
	}
}

// heed does what the signals ask for that no command has got.
func (j *job) heed() error {
	missed := j.missed
	j.missed = nil
	for _, s := range missed {
		if sig, ok := s.(syscall.Signal); ok && guard.Stops(sig) {
			continue // it has stopped this process
		}
		if err := j.whileWaiting(s); err != nil {
			return err
		}
	}
	return nil
}

// turn waits for the lock and runs the command once.
func (j *job) turn(ctx context.Context) error {
	lease, err := j.wait(ctx)
	if j.guard != nil {
		defer j.guard.Close()
	}
	if lease != nil {
		defer lease.Release() // the command is over by then, or was never begun
	}
	if err != nil {
		return err
	}
	if err := j.clearRest(ctx, lease); err != nil {
		return err
	}
	return j.hold(lease) //nolint:contextcheck // the lease has its own
}

// hold runs the command under the lease, and passes on what happens until nothing is left of it. Signals are answered
// from the beginning: Ctrl-Z may stop the child before it has executed the command, and then the start takes until fg.
func (j *job) hold(lease *interlock.Lease) error {
	grace := j.flags.grace()
	least := grace // the time that the command has at least, or another grant is waited for
	j.latest = 0
	if j.flags.MaxHold != nil { // longer than the grace
		longest := *j.flags.MaxHold - grace
		j.latest = guard.Now() + int64(longest)
		least = min(least, longest/2) // no grant has more than longest
	}
	starting := make(chan error, 1)
	j.halted, j.continued = make(chan struct{}, 1), 0
	command := guard.Command{
		Args:     j.args,
		Env:      environ(aroundLease{j.name, lease.Fence(), bareStore(j.store)}),
		Inherit:  j.tap.inherit(), // nobody is let in while a process that has them lives
		Deadline: j.until(lease),
		Least:    least,
		KillRest: j.flags.KillRest,
		OwnStdio: !j.again, // the next term's command wants them, too
		Event:    j.event,
	}
	go func() { starting <- j.guard.Run(command) }()

	var over <-chan struct{} // once it runs
	var why error            // the lock was lost, and the guard was told
	lost := lease.Context().Done()
	for {
		select {
		case err := <-starting:
			if err != nil {
				return j.notStarted(lease, least, err)
			}
			over, j.missed = j.guard.Done(), nil
			for _, s := range j.early {
				j.pass(s)
			}
			j.early = nil
		case <-over:
			return j.end(lease, why)
		case <-j.renewed:
			j.guard.SetDeadline(j.until(lease))
		case <-lost:
			lost, why = nil, context.Cause(lease.Context())
			j.guard.Stop(guard.DeadlineAt(guard.Now(), grace))
		case <-j.halted:
			j.haltAlong(over != nil)
		case s := <-j.signals.C:
			if over == nil || why != nil {
				j.missed = append(j.missed, s)
			}
			j.pass(s)
		}
	}
}

// haltAlong stops this process where the command, which runs, is stopped now: the look and the stop stand as near to each other as can be,
// since nobody would continue this process if the command went on in between.
func (j *job) haltAlong(runs bool) {
	j.tap.Lock()
	defer j.tap.Unlock()
	if runs && j.guard.Halted() {
		guard.StopSelf(nil)
		j.continued = guard.Now()
	}
}

// pass passes a signal on to the command, and stops this process along with it.
func (j *job) pass(s os.Signal) {
	sig, ok := s.(syscall.Signal)
	if !ok {
		return
	}
	j.guard.Forward(sig)
	if guard.Stops(sig) && (j.continued == 0 || guard.Now() > j.continued+int64(hearing)) {
		guard.StopSelf(j.tap)
		j.guard.Continue()
	}
}

// notStarted returns why the command did not run.
func (j *job) notStarted(lease *interlock.Lease, least time.Duration, err error) error {
	var cannot *guard.StartError
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE): // the guard has met this, and not the command
		return err
	case errors.As(err, &cannot):
		return &commandError{status: cannot.ExitCode(), err: fmt.Errorf("cannot execute %s: %w", cannot.Name, cannot.Err)}
	case errors.Is(err, guard.ErrLate):
		// The next grant would have no more time than this one where --max-hold was it.
		if lost := lease.Err(); errors.Is(lost, interlock.ErrMaxHold) || lost == nil && j.latest != 0 && guard.Now()+int64(least) >= j.latest {
			return &exitError{exitLost, fmt.Errorf("lost %q, in %s, before the command was started: %w: want a longer --max-hold; the last %v of it are the grace",
				j.name, j.store, interlock.ErrMaxHold, j.flags.grace())}
		}
		return errLate
	case errors.Is(err, guard.ErrDied):
		// Ctrl-C at the very moment when the guard was forked ends it along with this process.
		for {
			select {
			case s := <-j.signals.C:
				if err := j.whileWaiting(s); err != nil {
					return err
				}
				continue
			default:
			}
			return j.lost(lease.Err(), true)
		}
	}
	return err
}

// end returns how the command ended. A loss counts when the command was stopped for it, or when others may have got in
// before the command's end; a command that ended by itself in time did its work under the lock.
func (j *job) end(lease *interlock.Lease, why error) error {
	state := j.guard.Wait()
	overtaken := errors.Is(why, driver.ErrGone) || errors.Is(why, driver.ErrBroken) || errors.Is(why, driver.ErrSessionLost)
	switch {
	case state.Stopped || overtaken:
		if why == nil {
			why = lease.Err()
		}
		return j.lost(why, state.GuardDied)
	case state.Signal != 0:
		return &commandError{status: state.ExitCode(), by: state.Signal}
	case state.Code != 0:
		return &commandError{status: state.Code}
	}
	return nil
}

// lost is the error of a command that was stopped, for a reason where one is known. That the lease is lost is said once.
func (j *job) lost(why error, guardDied bool) error {
	reason := "its time was over"
	switch {
	case errors.Is(why, driver.ErrBroken):
		reason = driver.ErrBroken.Error()
	case errors.Is(why, driver.ErrGone): // which is all that most stores know of a claim that was broken at once
		reason = "gone from the store, as by break --now"
	case why != nil:
		reason = strings.TrimPrefix(why.Error(), interlock.ErrLost.Error()+": ")
	case guardDied:
		reason = "its guard has died"
	case j.latest != 0 && guard.Now() >= j.latest: // the guard's timer came before the client's
		reason = interlock.ErrMaxHold.Error()
	}
	return &exitError{exitLost, fmt.Errorf("lost %q, in %s, and stopped the command: %s", j.name, j.store, reason)}
}

// event tells people what the guard sees.
func (j *job) event(e guard.Event) {
	switch e.Kind {
	case guard.Remaining:
		j.say("the command has ended, but %s of it goes on: keeping %q until that has ended, too (--kill-rest would kill it)", processes(e.Pids), j.name)
	case guard.Halted:
		select {
		case j.halted <- struct{}{}:
		default:
		}
	case guard.Unkillable:
		j.say("no permission to kill %s of the command: keeping %q until that has ended", processes(e.Pids), j.name)
	}
}

func processes(pids []int) string {
	if len(pids) == 1 {
		return fmt.Sprintf("process %d", pids[0])
	}
	return fmt.Sprintf("a rest of %d processes, as %d,", len(pids), pids[0])
}

func (j *job) say(format string, args ...any) { j.t.say(format, args...) }

// close gives everything back; it waits for the rest of --min-hold. Whether the lock is free is known only now: a Release that was not
// confirmed in time goes on until the client's end.
func (j *job) close() {
	if j.client != nil {
		if err := j.client.Close(); errors.Is(err, interlock.ErrUncertain) {
			j.say("%s; the store is %s, and others get the lock when its TTL of %v is over, at the latest", strings.TrimPrefix(oneLine(err), "interlock: "), j.store, *j.flags.TTL)
		}
	}
	if j.tap != nil {
		_ = j.tap.Close(context.Background())
	}
}
