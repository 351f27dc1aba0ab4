//go:build linux || darwin

package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/interlock-go/interlock/internal/workers"
	"github.com/interlock-go/interlock/internal/workers/monotonic"
)

// txWorker is a worker whose goroutines lock a name in a transaction each, again and again. There
// is no lease: all that was written under the lock is committed, or nothing.
type txWorker struct {
	Job
	board *workers.Board
	at    database
	file  *os.File
}

// transact runs the goroutines of one worker until the board's end.
func transact(j Job, d *Log, act func(*txWorker, context.Context, *workers.Seat, int) error) error {
	b, err := workers.OpenBoard(j.Board)
	if err != nil {
		return err
	}
	ctx := context.Background()
	at, err := j.database(ctx)
	if err != nil {
		return err
	}
	defer at.close()
	a := &txWorker{Job: j, board: b, at: at}
	if a.file, err = os.OpenFile(j.Files[0], os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	defer a.file.Close()
	d.head.ready.Store(1)
	for b.Start.Load() == 0 {
		monotonic.Pause(time.Millisecond, nil)
	}
	var all sync.WaitGroup
	failed := make([]error, j.Count)
	for i := range j.Count {
		all.Go(func() {
			for failed[i] == nil && int64(monotonic.Now()) < b.End.Load() {
				failed[i] = act(a, ctx, &b.Seats[j.First+i], j.First+i+1)
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// contend is one lock of a contest, in which nothing goes wrong.
func (a *txWorker) contend(ctx context.Context, s *workers.Seat, number int) error {
	asked := monotonic.Now()
	tx, err := a.at.begin(ctx)
	if err != nil {
		return err
	}
	defer tx.rollback(ctx)
	token, err := tx.lock(ctx, a.Names[0])
	if err != nil {
		return err
	}
	got := monotonic.Now()
	counts := a.board.Counts(got)
	a.board.Enter(int64(a.Slot+1), int64(number), counts)
	if token != 0 {
		a.board.Draw(token)
	}
	if _, err := addIn(a.file, func(n int64) int64 { return n + 1 }); err != nil {
		return err
	}
	s.Entered.Add(1)
	if counts {
		s.Counted.Add(1)
		s.Longest.Store(max(s.Longest.Load(), int64(got.Sub(asked))))
	}
	a.board.Leave(int64(number))
	return tx.commit(ctx)
}

// errDisorder is an error that no fault excuses.
var errDisorder = errors.New("torture: a token after one that was not smaller")

// add is one lock of a storm: it adds 1 to a number in the database, and leaves its token there.
// The outcome of a commit without an answer is not known: it is counted as lost before, and no more
// when the answer has come.
func (a *txWorker) add(ctx context.Context, s *workers.Seat, _ int) error {
	ctx, cancel := context.WithTimeout(ctx, 10*a.TTL)
	defer cancel()
	err := func() error {
		tx, err := a.at.begin(ctx)
		if err != nil {
			return err
		}
		// after a commit there is nothing to roll back
		defer tx.rollback(context.WithoutCancel(ctx))
		var token uint64
		if a.Guard != Unlocked {
			if token, err = tx.lock(ctx, a.Names[0]); err != nil {
				return err
			}
		}
		n, last, err := tx.read(ctx)
		if err != nil {
			return err
		}
		if int64(token) <= last && a.Guard != Unlocked { //nolint:gosec // they come from a bigint
			return fmt.Errorf("%w: %d after %d", errDisorder, token, last)
		}
		monotonic.Pause(a.Hold, ctx.Done())
		if err := tx.write(ctx, n+1, int64(token)); err != nil { //nolint:gosec // as above
			return err
		}
		s.Lost.Add(1)
		if err := tx.commit(ctx); err != nil {
			return err
		}
		s.Entered.Add(1)
		s.Lost.Add(-1)
		return nil
	}()
	if errors.Is(err, errDisorder) {
		return err
	}
	if err != nil { // the server is away, or has ended the transaction
		monotonic.Pause(10*time.Millisecond, nil)
	}
	return nil
}
