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
	// lateGuard is how long the guard of an interlock that is stopped may take to end the job, on a busy machine, after the
	// time of the lock.
	lateGuard = time.Second
	// outlasting is how long what has got SIGKILL may take to end: its memory is torn down first.
	outlasting = 10 * time.Second
)

// rest returns what former jobs under the name have left running, as when interlock and its guard were killed together.
func (j *job) rest(ctx context.Context) ([]driver.Rest, error) {
	f, ok := j.tap.Driver.(driver.RestFinder)
	if !ok {
		return nil, fmt.Errorf("this store does not see what outlives its holder: %w", errors.ErrUnsupported)
	}
	rest, err := f.Rest(ctx, j.name)
	if err != nil {
		err = &exitError{exitStore, fmt.Errorf("cannot tell whether a former job under %q still runs: %w", j.name, err)}
	}
	return rest, err
}

// canRefuse refuses --refuse-rest where nothing would ever be refused.
func (j *job) canRefuse(ctx context.Context) error {
	if !j.flags.RefuseRest {
		return nil
	}
	if _, err := j.rest(ctx); errors.Is(err, errors.ErrUnsupported) {
		return usage("--refuse-rest has no effect in %s, want the embedded store", j.store)
	}
	return nil
}

// clearRest comes between the lock and the command. It says what former jobs have left running, also with --quiet, since two jobs then run
// at once; and, where that is asked for, refuses to start beside it or ends it first.
func (j *job) clearRest(ctx context.Context, lease *interlock.Lease) error {
	rest, err := j.rest(ctx)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil
	case err != nil && (j.flags.KillRest || j.flags.RefuseRest):
		return err
	case err != nil:
		j.loud.say("%s", oneLine(err))
	}
	if slices.ContainsFunc(rest, func(r driver.Rest) bool { return r.Lives }) {
		if rest, err = j.outwait(ctx, lease, lateGuard); err != nil || len(rest) == 0 {
			return err
		}
	}
	switch text := former(rest); {
	case len(rest) == 0:
	case j.flags.RefuseRest:
		return j.notBeside(rest, nil)
	case j.flags.KillRest:
		return j.killRest(ctx, lease, rest)
	case text != j.told: // of elect, once for all terms
		j.told = text
		j.loud.say("a former job under %q still runs beside this one: %s (--kill-rest would end it first, --refuse-rest not start)", j.name, text)
	}
	return nil
}

// outwait waits until nothing is left of former jobs, but no longer than d, and returns what is left.
func (j *job) outwait(ctx context.Context, lease *interlock.Lease, d time.Duration) ([]driver.Rest, error) {
	end, look := time.NewTimer(d), time.NewTicker(20*time.Millisecond)
	defer end.Stop()
	defer look.Stop()
	for over := false; ; {
		rest, err := j.rest(ctx)
		if over || err != nil || len(rest) == 0 {
			return rest, err
		}
		select {
		case <-look.C:
		case <-end.C:
			over = true
		case <-lease.Context().Done():
			return nil, errLate
		case s := <-j.signals.C:
			if err := j.whileWaiting(s); err != nil {
				return nil, err
			}
		}
	}
}

// killRest asks what former jobs have left running to end, as the guard does, kills it after the grace, and returns nil
// when nothing of it is left. What it forks meanwhile gets SIGKILL as well.
func (j *job) killRest(ctx context.Context, lease *interlock.Lease, rest []driver.Rest) error {
	finder := j.tap.Driver.(driver.RestFinder) // or there were no rest
	j.say("a former job under %q still runs: %s; ending it first", j.name, former(rest))
	failed := errors.Join(finder.SignalRest(ctx, j.name, syscall.SIGTERM), finder.SignalRest(ctx, j.name, syscall.SIGCONT))
	patience := j.flags.grace()
	for end := time.Now().Add(patience + outlasting); failed == nil && time.Now().Before(end); {
		left, err := j.outwait(ctx, lease, patience)
		if err != nil || len(left) == 0 {
			return err
		}
		if rest = left; !seen(rest) {
			break
		}
		failed, patience = finder.SignalRest(ctx, j.name, syscall.SIGKILL), 50*time.Millisecond
	}
	return j.notBeside(rest, failed)
}

// notBeside is the error of a command that was not started beside what a former job has left running.
func (j *job) notBeside(rest []driver.Rest, why error) error {
	err := fmt.Errorf("a former job under %q still runs: %s; the command was not started", j.name, former(rest))
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
