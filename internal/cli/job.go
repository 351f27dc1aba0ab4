package cli

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/guard"
	"github.com/interlock-go/interlock/internal/opening"
)

// job is one command under one lock: it waits, runs, renews, and lets go.
//
//	wait for the lock ──┐
//	start the guard ────┴─> run the command ──> it ends ──> release ──> exit as it did
//	                          │ lock lost ──> SIGTERM, SIGKILL, all of it over ──> exit 76
//	                          │ signal ──> passed on
//
// Its parts know nothing of each other: openForJob, guardStart, waiter, formerJobs, and hold, which
// is the command under one grant of the lock. What they share are the signals.
type job struct {
	wanted
	patience
	storeFlags *storeFlags
	t          terminal
	loud       terminal // t, also with --quiet: for what is wrong although the command runs
	args       []string
	flags      *holdFlags
	again      bool // after a loss, stand again

	// Set by run and connect.
	tap     *tap
	renewed renewals
	client  *interlock.Client
	lock    locker
	signals *caught
	start   *guardStart
	former  *formerJobs
	missed  []os.Signal // of the last hold
}

// run runs the job once, from the wait to the release.
func (j *job) run(ctx context.Context, lock func(*interlock.Client) (locker, error)) error {
	j.signals = new(caught)
	j.start, j.signals.Signals = startFirst()
	// A message whose reader is gone fails to be written. By default it would end this process, and
	// so the command.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if err := j.connect(ctx, lock); err != nil {
		j.start.close()
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
				j.t.say("%s", oneLine(err))
			}
			return asked
		}
		if !late {
			j.t.say("%s; standing again", oneLine(err))
			if err := j.pause(); err != nil {
				return err
			}
		}
		j.start = startNext()
	}
}

// connect opens the store and makes the lock, both for one command.
func (j *job) connect(ctx context.Context, lock func(*interlock.Client) (locker, error)) error {
	d, store, err := openForJob(ctx, j.t, j.storeFlags, j.patience, j.signals)
	if err != nil {
		return err
	}
	if d.Traits().Fence == driver.NoFence {
		j.t.say("this store draws no tokens: INTERLOCK_FENCE is 0")
	}
	j.flags.setTTL(d.Traits())
	j.store, j.tap, j.renewed = store, &tap{Driver: d}, make(renewals, 1)
	j.former = &formerJobs{wanted: j.wanted, in: d, flags: j.flags, t: j.t, loud: j.loud, signals: j.signals}
	if err := j.former.canRefuse(ctx); err != nil {
		return err
	}
	j.signals.outside = j.tap
	o := &interlock.Options{Tracer: j.renewed, Logger: slog.New(slog.DiscardHandler)}
	if j.forStore > opening.Patience { // a long wait for the lock waits for a server, too
		o.Patience = j.forStore
	}
	j.client, err = interlock.New(j.tap, o)
	if err != nil {
		return err
	}
	if j.lock, err = lock(j.client); err != nil {
		var e *interlock.Error
		if errors.As(err, &e) { // what was given is wrong, and the name only where it is said
			err = e.Err
		}
		return &exitError{exitUsage, err}
	}
	if j.once { // waits for nobody
		return nil
	}
	return deadlock(ctx, d, j.wanted)
}

// turn waits for the lock and runs the command once.
func (j *job) turn(ctx context.Context) error {
	w := &waiter{wanted: j.wanted, lock: j.lock, t: j.t, quiet: j.flags.Quiet, tap: j.tap, signals: j.signals}
	lease, err := w.wait(ctx, j.start)
	defer j.start.close()
	if lease != nil {
		defer lease.Release() // the command is over by then, or was never begun
	}
	if err != nil {
		return err
	}
	if err := j.former.clear(ctx, lease); err != nil {
		return err
	}
	h := &hold{
		wanted: j.wanted, lease: lease, args: j.args, flags: j.flags, ownStdio: !j.again, t: j.t,
		tap: j.tap, renewed: j.renewed, signals: j.signals, guard: j.start.guard,
	}
	err = h.run() //nolint:contextcheck // the lease has its own
	j.missed = h.missed
	return err
}

// heed does what the signals ask for that no command has got.
func (j *job) heed() error {
	missed := j.missed
	j.missed = nil
	for _, s := range missed {
		if sig, ok := s.(syscall.Signal); ok && guard.Stops(sig) {
			continue // it has stopped this process
		}
		if err := j.signals.withoutCommand(s); err != nil {
			return err
		}
	}
	return nil
}

// pause waits for a random time before standing again, so that those who lost together do not come
// back together.
func (j *job) pause() error {
	t := time.NewTimer(time.Duration(rand.Int64N(int64(min(*j.flags.TTL/3, time.Second)) + 1)))
	defer t.Stop()
	for {
		select {
		case <-t.C:
			return nil
		case s := <-j.signals.C:
			if err := j.signals.withoutCommand(s); err != nil {
				return err
			}
		}
	}
}

// close gives everything back; it waits for the rest of --min-hold. Whether the lock is free is
// known only now: a Release that was not confirmed in time goes on until the client's end.
func (j *job) close() {
	if j.client != nil {
		if err := j.client.Close(); errors.Is(err, interlock.ErrUncertain) {
			j.t.say("%s; the store is %s, and others get the lock when its TTL of %v is over, at the latest", strings.TrimPrefix(oneLine(err), "interlock: "), j.store, *j.flags.TTL)
		}
	}
	if j.tap != nil {
		_ = j.tap.Close(context.Background())
	}
}
