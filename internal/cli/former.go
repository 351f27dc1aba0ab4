package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

const (
	// lateGuard is how long the guard of an interlock that is stopped may take to end the job, on a
	// busy machine, after the time of the lock.
	lateGuard = time.Second
	// outlasting is how long what has got SIGKILL may take to end: its memory is torn down first.
	outlasting = 10 * time.Second
)

// formerJobs are the jobs that ran under the lock before, of which processes may be left, as when
// interlock and its guard were killed together.
type formerJobs struct {
	wanted
	in      driver.Driver
	flags   *holdFlags
	t, loud terminal // see job
	signals *caught
	said    string // the last notice of them
}

// rest returns what former jobs under the name have left running, as when interlock and its guard
// were killed together.
func (f *formerJobs) rest(ctx context.Context) ([]driver.Rest, error) {
	finder, ok := f.in.(driver.RestFinder)
	if !ok {
		return nil, fmt.Errorf("this store does not see what outlives its holder: %w", errors.ErrUnsupported)
	}
	rest, err := finder.Rest(ctx, f.name)
	if err != nil {
		err = &exitError{exitStore, fmt.Errorf("cannot tell whether a former job under %q still runs: %w", f.name, err)}
	}
	return rest, err
}

// canRefuse returns an error for --refuse-rest where the store does not see what former jobs left.
func (f *formerJobs) canRefuse(ctx context.Context) error {
	if !f.flags.RefuseRest {
		return nil
	}
	if _, err := f.rest(ctx); errors.Is(err, errors.ErrUnsupported) {
		return usage("--refuse-rest has no effect in %s, want the embedded store", f.store)
	}
	return nil
}

// clear comes between the lock and the command. It says what former jobs have left running, also
// with --quiet, since two jobs then run at once; and, where that is asked for, refuses to start
// beside it or ends it first.
func (f *formerJobs) clear(ctx context.Context, lease *interlock.Lease) error {
	rest, err := f.rest(ctx)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil
	case err != nil && (f.flags.KillRest || f.flags.RefuseRest):
		return err
	case err != nil:
		f.loud.say("%s", oneLine(err))
	}
	if slices.ContainsFunc(rest, func(r driver.Rest) bool { return r.Lives }) {
		if rest, err = f.outwait(ctx, lease, lateGuard); err != nil || len(rest) == 0 {
			return err
		}
	}
	switch text := former(rest); {
	case len(rest) == 0:
	case f.flags.RefuseRest:
		return f.notBeside(rest, nil)
	case f.flags.KillRest:
		return f.kill(ctx, lease, rest)
	case text != f.said: // of elect, once for all terms
		f.said = text
		f.loud.say("a former job under %q still runs beside this one: %s (--kill-rest would end it first, --refuse-rest not start)", f.name, text)
	}
	return nil
}

// outwait waits until nothing is left of former jobs, but no longer than d, and returns what is
// left.
func (f *formerJobs) outwait(ctx context.Context, lease *interlock.Lease, d time.Duration) ([]driver.Rest, error) {
	end, look := time.NewTimer(d), time.NewTicker(20*time.Millisecond)
	defer end.Stop()
	defer look.Stop()
	for over := false; ; {
		rest, err := f.rest(ctx)
		if over || err != nil || len(rest) == 0 {
			return rest, err
		}
		select {
		case <-look.C:
		case <-end.C:
			over = true
		case <-lease.Context().Done():
			return nil, errLate
		case s := <-f.signals.C:
			if err := f.signals.withoutCommand(s); err != nil {
				return nil, err
			}
		}
	}
}

// kill asks what former jobs have left running to end, as the guard does, kills it after the grace,
// and returns nil when nothing of it is left. What it forks meanwhile gets SIGKILL as well.
func (f *formerJobs) kill(ctx context.Context, lease *interlock.Lease, rest []driver.Rest) error {
	finder := f.in.(driver.RestFinder) // or there were no rest
	f.t.say("a former job under %q still runs: %s; ending it first", f.name, former(rest))
	failed := errors.Join(finder.SignalRest(ctx, f.name, syscall.SIGTERM), finder.SignalRest(ctx, f.name, syscall.SIGCONT))
	patience := f.flags.grace()
	for end := time.Now().Add(patience + outlasting); failed == nil && time.Now().Before(end); {
		left, err := f.outwait(ctx, lease, patience)
		if err != nil || len(left) == 0 {
			return err
		}
		if rest = left; !seen(rest) {
			break
		}
		failed, patience = finder.SignalRest(ctx, f.name, syscall.SIGKILL), 50*time.Millisecond
	}
	return f.notBeside(rest, failed)
}

// notBeside is the error of a command that was not started beside what a former job has left
// running.
func (f *formerJobs) notBeside(rest []driver.Rest, why error) error {
	err := fmt.Errorf("a former job under %q still runs: %s; the command was not started", f.name, former(rest))
	if why != nil {
		err = fmt.Errorf("%w: %w", err, why)
	}
	return &exitError{exitHeld, err}
}

// seen reports whether any process of the rest can be seen.
func seen(rest []driver.Rest) bool {
	for _, r := range rest {
		if len(r.PIDs) > 0 {
			return true
		}
	}
	return false
}

// former says what former jobs have left running.
func former(rest []driver.Rest) string {
	const most = 8 // pids that anybody wants to read
	var jobs []string
	for _, r := range rest {
		what := "a process that cannot be seen from here"
		switch n := len(r.PIDs); {
		case n == 1:
			what = fmt.Sprintf("process %d", r.PIDs[0])
		case n > 1:
			words := make([]string, 0, most)
			for _, pid := range r.PIDs[:min(n, most)] {
				words = append(words, strconv.Itoa(pid))
			}
			what = "processes " + strings.Join(words, " ")
			if n > most {
				what += fmt.Sprintf(" and %d more", n-most)
			}
		}
		jobs = append(jobs, what+" of "+owner(r.Owner))
	}
	return strings.Join(jobs, ", ")
}
