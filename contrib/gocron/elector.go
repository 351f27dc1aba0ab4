package interlockgocron

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/interlock-go/interlock"
)

// Elector is a [gocron.Elector]: all jobs of a scheduler run while its process leads, and are skipped elsewhere. It stands in
// the election of its name until Close, in order with all others who do, also by interlock.Election, which shows who leads. It
// is safe for concurrent use, and may be that of several schedulers.
type Elector struct {
	mutex  *interlock.Mutex
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	lease *interlock.Lease
	err   error // why the last wait failed
}

var _ gocron.Elector = (*Elector)(nil)

// ErrNotLeader says that another one leads, or nobody.
var ErrNotLeader = errors.New("not the leader")

// NewElector stands in the election of this name, in the background. It fails for a name or options that cannot be.
//
// The option interlock.MinHold keeps others from leading for so long, however soon this one is closed; interlock.Note is shown
// to those who look.
func NewElector(client *interlock.Client, election string, o ...interlock.LockOption) (*Elector, error) {
	// A leader has a claim of its own, which shows whose it is, and not one that the goroutines of the client pass on.
	m := client.Mutex(election, append([]interlock.LockOption{interlock.Isolated()}, o...)...)
	if err := m.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &Elector{mutex: m, cancel: cancel, done: make(chan struct{})}
	go e.stand(ctx)
	return e, nil
}

// stand waits to be elected, again after each loss, until ctx ends.
func (e *Elector) stand(ctx context.Context) {
	defer close(e.done)
	for ctx.Err() == nil {
		lease, err := e.mutex.Lock(ctx)
		e.mu.Lock()
		e.lease, e.err = lease, err
		e.mu.Unlock()
		if err == nil {
			select {
			case <-lease.Context().Done():
			case <-ctx.Done():
			}
			_ = lease.Release() // IsLeader has what became of it
		}
		pause := time.NewTimer(time.Second) // the client may be closed, and say so at once
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
	}
}

// IsLeader implements [gocron.Elector]: nil while this process leads, as far as the store has guaranteed that until now. It
// asks the clock and not the store, so it costs nothing, and a process that was stopped hears at once that it leads no more.
// The error matches ErrNotLeader, and says why where it knows: interlock.ErrLost after a loss, until it leads again;
// interlock.ErrUnavailable where the store has not answered its last wait.
func (e *Elector) IsLeader(context.Context) error {
	_, err := e.leads()
	return err
}

func (e *Elector) leads() (*interlock.Lease, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	why := e.err
	if e.lease != nil {
		why = e.lease.Err()
		if why == nil {
			return e.lease, nil
		}
	}
	if why == nil {
		return nil, fmt.Errorf("interlockgocron: %w", ErrNotLeader)
	}
	return nil, fmt.Errorf("interlockgocron: %w: %w", ErrNotLeader, why)
}

// Task returns the task of a job of the leader. The context of fn ends when the leadership can no longer be guaranteed and when
// gocron ends that of the job, has the values of the job's, and carries the token: interlock.Fence(ctx, election). If the
// leadership was lost while fn ran, the error that gocron's listener AfterJobRunsWithError gets matches interlock.ErrLost. If
// it was lost before, fn does not run, and the error matches ErrNotLeader.
func (e *Elector) Task(fn func(context.Context) error) gocron.Task {
	return gocron.NewTask(func(ctx context.Context) error {
		lease, err := e.leads()
		if err != nil {
			return err
		}
		return run(ctx, lease, fn)
	})
}

// Close ends the leadership or the wait for it, and lets the next one lead: call it when the jobs have ended, after the
// scheduler's Shutdown.
func (e *Elector) Close() error {
	e.cancel()
	<-e.done
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lease == nil {
		return nil
	}
	if err := e.lease.Release(); err != nil && !errors.Is(err, interlock.ErrLost) {
		return err
	}
	return nil
}
