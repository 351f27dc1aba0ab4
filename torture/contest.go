//go:build linux || darwin

package torture

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/interlock-go/interlock"
)

// contestant is a worker whose goroutines all want one name all the time, and leave their traces on the board.
type contestant struct {
	job
	board *board
	lock  *interlock.Mutex // nil = none
	file  *os.File

	mu  sync.Mutex
	err error
}

// contest runs the goroutines of one worker until the board's end.
func contest(j job, d *diary) error {
	b, err := openBoard(j.Board)
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
	c := &contestant{job: j, board: b, file: f}
	if j.Guard != unlocked {
		c.lock = client.Mutex(j.Names[0])
	}
	d.head.ready.Store(1)
	for b.start.Load() == 0 {
		pause(time.Millisecond, nil)
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

// race takes the lock again and again until the end. Waits that reach beyond it are not given up: a lock that is not
// granted any more shows as a worker that does not end.
func (c *contestant) race(number int) error {
	seat := &c.board.seats[number]
	for asked := now(); int64(asked) < c.board.end.Load(); asked = now() {
		lease, turn, err := c.ask()
		if errors.Is(err, errOver) {
			return nil
		}
		if err != nil {
			return err
		}
		got := now()
		counts := c.board.counts(got)
		var token uint64
		if lease != nil {
			token = lease.Fence()
		}
		c.board.enter(int64(c.Slot+1), int64(number+1), token, turn, counts)
		if _, err := addIn(c.file, func(n int64) int64 { return n + 1 }); err != nil {
			return err
		}
		if c.Hold > 0 {
			pause(c.Hold, nil)
		}
		seat.entered.Add(1)
		if counts {
			seat.counted.Add(1)
			if turn {
				seat.turns.Add(1)
			}
			if waited := int64(got.sub(asked)); waited > seat.longest.Load() {
				seat.longest.Store(waited)
			}
		}
		if lease != nil && lease.Err() != nil {
			seat.lost.Add(1)
		}
		c.board.leave(int64(number + 1))
		if lease != nil {
			if err := lease.Release(); err != nil && !errors.Is(err, interlock.ErrLost) {
				return err
			}
		}
	}
	return nil
}

// ask takes the lock, if there is one, and says whether the store let this process in for that.
func (c *contestant) ask() (lease *interlock.Lease, turn bool, err error) {
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
		pause(time.Millisecond+time.Duration(rand.Int64N(int64(time.Millisecond))), nil)
		if !c.board.counts(now()) {
			return nil, false, errOver
		}
	}
}

// errOver says that a try came to nothing before the end.
var errOver = errors.New("torture: the contest is over")

// turnKey finds where a turnTracer says whether a grant was a turn.
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
