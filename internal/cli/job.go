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
	name  string
	args  []string
	flags *holdFlags

	store   string // for people
	tap     *tap
	renewed renewals
	client  *interlock.Client
	lock    locker
	signals *guard.Signals
	guard   *guard.Guard
	latest  int64       // the end of --max-hold less the grace, on the guard's clock; 0: none
	early   []os.Signal // came while waiting and are for the command
	again   bool        // after a loss, stand again
}

// errLate: the lock had too little time left to start the command.
var errLate = errors.New("the lock came too late to start the command")

// run runs the job once, from the wait to the release.
func (j *job) run(ctx context.Context, lock func(*interlock.Client) (locker, error)) error {
	j.signals = guard.Catch()
	if err := j.connect(ctx, lock); err != nil {
		return err
	}
	for {
		err := j.turn(ctx)
		switch {
		case errors.Is(err, errLate):
			continue // the next grant is a new one
		case j.again && statusOf(err) == exitLost:
			j.say("%s; standing again", oneLine(err))
			if err := j.pause(); err != nil {
				return err
			}
			continue
		}
		return err
	}
}

// turn waits for the lock and runs the command once.
func (j *job) turn(ctx context.Context) error {
	// The guard takes some milliseconds to start, which pass during the wait.
	started := make(chan error, 1)
	go func() {
		var err error
		j.guard, err = guard.Start(guard.Config{Event: j.event})
		started <- err
	}()
	lease, err := j.wait(ctx)
	if guardErr := <-started; guardErr != nil {
		if lease != nil {
			_ = lease.Release()
		}
		return errors.Join(err, guardErr)
	}
	defer j.guard.Close()
	if err != nil {
		return err
	}
	defer lease.Release() // the command is over by then, or was never begun
	return j.hold(lease)
}

// wait waits for the lock. A signal that would end a process ends the wait; others wait for the command.
func (j *job) wait(ctx context.Context) (*interlock.Lease, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		lease *interlock.Lease
		err   error
	}
	results := make(chan result, 1)
	go func() {
		lease, err := j.lock(ctx)
		results <- result{lease, err}
	}()
	var ended error
	patience := time.NewTimer(time.Second)
	defer patience.Stop()
	for {
		select {
		case r := <-results:
			if ended != nil {
				if r.lease != nil {
					_ = r.lease.Release()
				}
				return nil, ended
			}
			return r.lease, j.inTheWay(r.err)
		case s := <-j.signals.C:
			if err := j.whileWaiting(s); err != nil {
				ended = err
				cancel()
			}
		case <-patience.C:
			j.sayWhoWaits(ctx)
		}
	}
}

// whileWaiting does what a signal asks for while there is no command, and returns an error when that is to end.
func (j *job) whileWaiting(s os.Signal) error {
	sig, ok := s.(syscall.Signal)
	switch {
	case ok && guard.Ends(sig):
		return &commandError{status: 128 + int(sig), by: sig}
	case ok && guard.Stops(sig):
		guard.StopSelf(j.tap)
	default:
		j.early = append(j.early, s)
	}
	return nil
}

// sayWhoWaits tells a person at a terminal what takes so long.
func (j *job) sayWhoWaits(ctx context.Context) {
	i, ok := j.tap.Driver.(driver.Inspector)
	if !ok || !j.t.person {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	l, err := i.Line(ctx, j.name)
	if err != nil {
		return
	}
	for _, h := range l.Claims {
		if h.Held {
			j.say("waiting: %q is %s, in %s", j.name, heldBy(&h), j.store)
			return
		}
	}
}

// hold runs the command under the lease.
func (j *job) hold(lease *interlock.Lease) error {
	grace := j.flags.grace()
	j.latest = 0
	if j.flags.MaxHold != nil {
		j.latest = guard.Now() + int64(*j.flags.MaxHold-grace)
	}
	err := j.guard.Run(guard.Command{
		Args:     j.args,
		Env:      environ(j.name, lease.Fence()),
		Inherit:  j.tap.inherit(),
		Deadline: j.until(lease),
		Least:    grace,
		KillRest: j.flags.KillRest,
		OwnStdio: true,
	})
	var cannot *guard.StartError
	switch {
	case errors.As(err, &cannot):
		return &commandError{status: cannot.ExitCode(), err: fmt.Errorf("cannot execute %s: %w", cannot.Name, cannot.Err)}
	case errors.Is(err, guard.ErrLate):
		return errLate
	case errors.Is(err, guard.ErrDied):
		return &exitError{exitLost, fmt.Errorf("the guard of the command has died, and the command with it: %w", err)}
	case err != nil:
		return err
	}
	for _, s := range j.early {
		if sig, ok := s.(syscall.Signal); ok {
			j.guard.Forward(sig)
		}
	}
	j.early = nil
	return j.watch(lease)
}

// watch passes on what happens until nothing is left of the command.
func (j *job) watch(lease *interlock.Lease) error {
	lost := lease.Context().Done()
	var why error // the lock was lost, and the guard was told
	for {
		select {
		case <-j.guard.Done():
			return j.end(lease, why)
		case <-j.renewed:
			j.guard.SetDeadline(j.until(lease))
		case <-lost:
			lost, why = nil, context.Cause(lease.Context())
			j.guard.Stop(guard.DeadlineAt(guard.Now(), j.flags.grace()))
		case s := <-j.signals.C:
			sig, ok := s.(syscall.Signal)
			if !ok {
				continue
			}
			j.guard.Forward(sig)
			if guard.Stops(sig) {
				guard.StopSelf(j.tap)
				j.guard.Continue()
			}
		}
	}
}

// end returns how the command ended. A loss counts when the command was stopped for it, or when others may have got in
// before the command's end; a command that ended by itself in time did its work under the lock.
func (j *job) end(lease *interlock.Lease, why error) error {
	state := j.guard.Wait()
	overtaken := errors.Is(why, driver.ErrGone) || errors.Is(why, driver.ErrSessionLost)
	switch {
	case state.GuardDied:
		return &exitError{exitLost, fmt.Errorf("the guard of the command has died; everything of %q was killed", j.name)}
	case state.Stopped || overtaken:
		if why == nil {
			why = lease.Err()
		}
		if why == nil {
			why = errors.New("its time was over")
		}
		return &exitError{exitLost, fmt.Errorf("lost %q, in %s, and stopped the command: %w", j.name, j.store, why)}
	case state.Signal != 0:
		return &commandError{status: state.ExitCode(), by: state.Signal}
	case state.Code != 0:
		return &commandError{status: state.Code}
	}
	return nil
}

// event tells people what the guard sees.
func (j *job) event(e guard.Event) {
	switch e.Kind {
	case guard.Remaining:
		j.say("the command has ended, but %s of it goes on: keeping %q until that has ended, too (--kill-rest would kill it)", processes(e.Pids), j.name)
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

func (j *job) say(format string, args ...any) {
	fmt.Fprintf(j.t.err, "interlock: "+format+"\n", args...)
}

// close gives everything back; it waits for the rest of --min-hold.
func (j *job) close() {
	if j.client != nil {
		_ = j.client.Close()
	}
	if j.tap != nil {
		_ = j.tap.Close(context.Background())
	}
}
