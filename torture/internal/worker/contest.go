//go:build linux || darwin

package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/workers"
	"github.com/interlock-go/interlock/internal/workers/monotonic"
)

// contestWorker is a worker whose goroutines all want one name all the time, and record on the
// board when they hold it.
type contestWorker struct {
	Job
	board *workers.Board
	lock  *interlock.Mutex // nil = none
	file  *os.File

	mu  sync.Mutex
	err error
}

// contest runs the goroutines of one worker until the board's end.
func contest(j Job, d *Log) error {
	b, err := workers.OpenBoard(j.Board)
	if err != nil {
		return err
	}
	var tracer interlock.Tracer
	if j.Turns {
		tracer = turnTracer{}
	}
	client, _, closeClient, err := j.open(context.Background(), nil, tracer)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(j.Files[0], os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return errors.Join(err, closeClient())
	}
	defer f.Close()
	c := &contestWorker{Job: j, board: b, file: f}
	if j.Guard != Unlocked {
		c.lock = client.Mutex(j.Names[0])
	}
	d.head.ready.Store(1)
	for b.Start.Load() == 0 {
		monotonic.Pause(time.Millisecond, nil)
	}
	var all sync.WaitGroup
	for i := range j.Count {
		all.Go(func() {
			if err := c.race(j.First + i); err != nil {
				c.mu.Lock()
				c.err = errors.Join(c.err, err)
				c.mu.Unlock()
			}
		})
	}
	all.Wait()
	return errors.Join(c.err, closeClient())
}

// race acquires the lock again and again until the end. Waits that reach beyond it are not given
// up: a lock that is not granted any more shows as a worker that does not end.
func (c *contestWorker) race(number int) error {
	seat := &c.board.Seats[number]
	for asked := monotonic.Now(); int64(asked) < c.board.End.Load(); asked = monotonic.Now() {
		lease, turn, err := c.ask()
		if errors.Is(err, errOver) {
			return nil
		}
		if err != nil {
			return err
		}
		got := monotonic.Now()
		counts := c.board.Counts(got)
		c.board.Enter(int64(c.Slot+1), int64(number+1), counts)
		if lease != nil && lease.Fence() != 0 {
			c.board.Draw(lease.Fence())
		}
		if turn {
			c.board.Grant(int64(c.Slot+1), counts)
		}
		if _, err := addIn(c.file, func(n int64) int64 { return n + 1 }); err != nil {
			return err
		}
		if c.Hold > 0 {
			monotonic.Pause(c.Hold, nil)
		}
		seat.Entered.Add(1)
		if counts {
			seat.Counted.Add(1)
			if turn {
				seat.Turns.Add(1)
			}
			if waited := int64(got.Sub(asked)); waited > seat.Longest.Load() {
				seat.Longest.Store(waited)
			}
		}
		if lease != nil && lease.Err() != nil {
			seat.Lost.Add(1)
		}
		c.board.Leave(int64(number + 1))
		if lease != nil {
			if err := lease.Release(); err != nil && !errors.Is(err, interlock.ErrLost) {
				return err
			}
		}
	}
	return nil
}

// ask acquires the lock, if there is one. turn reports whether the store granted it to this process
// for that: it was not passed on inside.
func (c *contestWorker) ask() (lease *interlock.Lease, turn bool, err error) {
	if c.lock == nil {
		return nil, false, nil
	}
	ctx := context.Background()
	if c.Turns {
		ctx = context.WithValue(ctx, turnKey{}, &turn)
	}
	if !c.Tries {
		lease, err = c.lock.Lock(ctx)
		return lease, turn, err
	}
	for {
		lease, err = c.lock.TryLock(ctx)
		if !errors.Is(err, interlock.ErrHeld) {
			return lease, turn, err
		}
		monotonic.Pause(time.Millisecond+time.Duration(rand.Int64N(int64(time.Millisecond))), nil)
		if !c.board.Counts(monotonic.Now()) {
			return nil, false, errOver
		}
	}
}

// errOver: the contest was over before a try succeeded.
var errOver = errors.New("torture: the contest is over")

// turnKey is the key of the variable in which a turnTracer notes whether a grant was a turn.
type turnKey struct{}

// turnTracer tells grants by the store from leases that were passed on inside the process.
type turnTracer struct{}

// WaitStart implements interlock.Tracer.
func (turnTracer) WaitStart(ctx context.Context, _ interlock.WaitStart) context.Context { return ctx }

// WaitEnd implements interlock.Tracer.
func (turnTracer) WaitEnd(ctx context.Context, d interlock.WaitEnd) {
	if turn, ok := ctx.Value(turnKey{}).(*bool); ok {
		*turn = d.Err == nil && !d.Passed
	}
}

// HoldEnd implements interlock.Tracer.
func (turnTracer) HoldEnd(context.Context, interlock.HoldEnd) {}

// Renewed implements interlock.Tracer.
func (turnTracer) Renewed(context.Context, interlock.Renewed) {}
