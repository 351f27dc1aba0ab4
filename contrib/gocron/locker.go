package interlockgocron

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/interlock-go/interlock"
)

// Locker is a [gocron.Locker]: of the schedulers that come to run a job the first one does, and the others skip it. It is safe
// for concurrent use, and may be that of several schedulers.
type Locker struct {
	client  *interlock.Client
	options []interlock.LockOption

	mu   sync.Mutex
	runs map[context.Context]*lock // that begin, by the context of their job
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a Locker whose locks have the names of the jobs, and the options. A lock is kept for minHold after the
// run's begin, however soon the job is done: longer than the clocks of the fleet differ, and shorter than the time to the
// next run, which is skipped else. 0 is for jobs that may run once on each machine, one after the other. The client's
// Shutdown waits for that time.
func NewLocker(client *interlock.Client, minHold time.Duration, o ...interlock.LockOption) *Locker {
	return &Locker{
		client:  client,
		options: append(slices.Clone(o), interlock.MinHold(minHold)),
		runs:    make(map[context.Context]*lock),
	}
}

// Lock implements [gocron.Locker]. It does not wait: errors are those of interlock.Mutex.TryLock. It panics for a job that was
// made by Task and given no name: all of them would have the same.
func (k *Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	if strings.HasPrefix(job, unnamed) {
		panic("interlockgocron: a job made by Task has no name of its own: give it one by gocron.WithName")
	}
	lease, err := k.client.Mutex(job, k.options...).TryLock(ctx)
	if err != nil {
		return nil, err
	}
	l := &lock{locker: k, job: ctx, lease: lease}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.runs[ctx] = l
	return l, nil
}

// lock is that of one run.
type lock struct {
	locker *Locker
	job    context.Context //nolint:containedctx // it says which job this is
	lease  *interlock.Lease
}

// Unlock implements [gocron.Lock]. The context is that of the job, which ends when the scheduler is shut down: the lock is
// released all the same.
func (l *lock) Unlock(context.Context) error {
	l.locker.mu.Lock()
	if l.locker.runs[l.job] == l {
		delete(l.locker.runs, l.job) //nolint:contextcheck // a key
	}
	l.locker.mu.Unlock()
	return l.lease.Release()
}

// ErrNoLock is the error of a job that was made by Task and would run without its lock.
var ErrNoLock = errors.New("the job runs without its lock")

// Task returns the task of a job that runs under the Locker's lock. The context of fn ends when the lock can no longer be
// guaranteed and when gocron ends that of the job, has the values of the job's, and carries the token: interlock.Fence(ctx,
// job), by the job's name. The job must have a name, by gocron.WithName.
//
// gocron is told what fn returned, and that the lock was lost while it ran: the error that its listener
// AfterJobRunsWithError gets matches interlock.ErrLost then. Where the scheduler or job has another Locker or none, or an
// Elector beside this one, whom gocron prefers, fn does not run, and the error matches ErrNoLock.
func (k *Locker) Task(fn func(context.Context) error) gocron.Task {
	return gocron.NewTask((&task{k, fn}).run)
}

// task is what gocron runs. It calls a job without a name by its function: as a method this one has the same wherever the
// compiler puts Task, and Lock knows it.
type task struct {
	locker *Locker
	fn     func(context.Context) error
}

const unnamed = "github.com/interlock-go/interlock/contrib/gocron.(*task).run"

func (t *task) run(ctx context.Context) error {
	// gocron gives the same context to Lock and to the function. Of two runs of one job the second gets the lock after the
	// first one's Unlock or loss.
	k := t.locker
	k.mu.Lock()
	l := k.runs[ctx]
	delete(k.runs, ctx)
	k.mu.Unlock()
	if l == nil {
		return fmt.Errorf("interlockgocron: %w: is this Locker that of the scheduler, and is there no Elector?", ErrNoLock)
	}
	return run(ctx, l.lease, t.fn)
}

// run runs fn under the lease of somebody else, who releases it.
func run(job context.Context, lease *interlock.Lease, fn func(context.Context) error) error {
	held := lease.Context()
	ctx, cancel := context.WithCancelCause(values{held, job})
	defer cancel(nil)
	defer context.AfterFunc(job, func() { cancel(context.Cause(job)) })()
	err := fn(ctx) //nolint:contextcheck // it ends with that of the job, too
	if lost := lease.Err(); errors.Is(lost, interlock.ErrLost) {
		return errors.Join(err, lost)
	}
	return err
}

// values is a context that has the values of another one behind its own.
type values struct {
	context.Context //nolint:containedctx // the lease's

	job context.Context //nolint:containedctx // for its values
}

func (v values) Value(key any) any {
	if x := v.Context.Value(key); x != nil {
		return x
	}
	return v.job.Value(key)
}
