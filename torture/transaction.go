//go:build linux || darwin

package torture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// The locks that a transaction of a worker's own takes.
const (
	byRow      = "row"
	byAdvisory = "advisory"
)

// actor is a worker whose goroutines lock a name in a transaction each, again and again. There is no lease: what was written under
// the lock is there when the transaction has been committed, or none of it is.
type actor struct {
	job
	board *board
	at    database
	file  *os.File
}

// transact runs the goroutines of one worker until the board's end.
func transact(j job, d *diary, act func(*actor, context.Context, *seat, int) error) error {
	b, err := openBoard(j.Board)
	if err != nil {
		return err
	}
	ctx := context.Background()
	at, err := j.database(ctx)
	if err != nil {
		return err
	}
	defer at.close()
	a := &actor{job: j, board: b, at: at}
	if a.file, err = os.OpenFile(j.Files[0], os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	defer a.file.Close()
	d.head.ready.Store(1)
	for b.start.Load() == 0 {
		pause(time.Millisecond, nil)
	}
	var all sync.WaitGroup
	failed := make([]error, j.Count)
	for i := range j.Count {
		all.Go(func() {
			for failed[i] == nil && int64(now()) < b.end.Load() {
				failed[i] = act(a, ctx, &b.seats[j.First+i], j.First+i+1)
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// enter is one lock of a contest, in which nothing goes wrong.
func (a *actor) enter(ctx context.Context, s *seat, number int) error {
	asked := now()
	tx, err := a.at.begin(ctx)
	if err != nil {
		return err
	}
	defer tx.rollback(ctx)
	token, err := tx.lock(ctx, a.Names[0])
	if err != nil {
		return err
	}
	got := now()
	counts := a.board.counts(got)
	a.board.enter(int64(a.Slot+1), int64(number), token, true, counts)
	if _, err := addIn(a.file, func(n int64) int64 { return n + 1 }); err != nil {
		return err
	}
	s.entered.Add(1)
	if counts {
		s.counted.Add(1)
		s.longest.Store(max(s.longest.Load(), int64(got.sub(asked))))
	}
	a.board.leave(int64(number))
	return tx.commit(ctx)
}

// errDisorder is what nothing excuses.
var errDisorder = errors.New("torture: a token after one that was not smaller")

// add is one lock of a storm: it adds 1 to a number in the database, and leaves its token there. Of a commit without an answer nobody
// knows: that is counted as lost before, and no more when the answer has come.
func (a *actor) add(ctx context.Context, s *seat, _ int) error {
	ctx, cancel := context.WithTimeout(ctx, 10*a.TTL)
	defer cancel()
	err := func() error {
		tx, err := a.at.begin(ctx)
		if err != nil {
			return err
		}
		defer tx.rollback(context.WithoutCancel(ctx)) // after a commit there is nothing to roll back
		var token uint64
		if a.Guard != unlocked {
			if token, err = tx.lock(ctx, a.Names[0]); err != nil {
				return err
			}
		}
		n, last, err := tx.read(ctx)
		if err != nil {
			return err
		}
		if int64(token) <= last && a.Guard != unlocked { //nolint:gosec // they come from a bigint
			return fmt.Errorf("%w: %d after %d", errDisorder, token, last)
		}
		pause(a.Hold, ctx.Done())
		if err := tx.write(ctx, n+1, int64(token)); err != nil { //nolint:gosec // as above
			return err
		}
		s.lost.Add(1)
		if err := tx.commit(ctx); err != nil {
			return err
		}
		s.entered.Add(1)
		s.lost.Add(-1)
		return nil
	}()
	if errors.Is(err, errDisorder) {
		return err
	}
	if err != nil { // the server is away, or has ended the transaction
		pause(10*time.Millisecond, nil)
	}
	return nil
}
