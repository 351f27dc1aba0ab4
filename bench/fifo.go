package main

import (
	"context"
	"slices"
	"sync"
)

// fifo is the floor of one process: a mutex that hands over in the order of
// arrival and does nothing else. It knows no names, contexts, leases or
// errors.
type fifo struct {
	mu    sync.Mutex
	held  bool
	line  []chan struct{}
	spare sync.Pool
}

func openFIFO(context.Context, place) (locker, error) { return newFIFO(), nil }

func newFIFO() *fifo {
	return &fifo{spare: sync.Pool{New: func() any { return make(chan struct{}, 1) }}}
}

func (f *fifo) mutex(string) mutex { return f }

func (f *fifo) lock(context.Context) (func() error, error) {
	f.mu.Lock()
	if !f.held {
		f.held = true
		f.mu.Unlock()
		return f.unlock, nil
	}
	turn := f.spare.Get().(chan struct{})
	f.line = append(f.line, turn)
	f.mu.Unlock()
	<-turn
	f.spare.Put(turn)
	return f.unlock, nil
}

func (f *fifo) unlock() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.line) == 0 {
		f.held = false
		return nil
	}
	f.line[0] <- struct{}{}
	f.line = f.line[1:]
	return nil
}

func (f *fifo) close() error { return nil }

// fifoWithContexts is a fifo that does what any lock with leases must do at
// least: every wait can be cancelled, and every hold has a context that ends
// with it. It shows how much of the distance to the bare one is owed to that.
type fifoWithContexts struct{ *fifo }

func openFIFOWithContexts(context.Context, place) (locker, error) {
	return fifoWithContexts{newFIFO()}, nil
}

func (f fifoWithContexts) mutex(string) mutex { return f }

func (f fifoWithContexts) lock(ctx context.Context) (func() error, error) {
	f.mu.Lock()
	if f.held {
		turn := make(chan struct{}, 1)
		f.line = append(f.line, turn)
		f.mu.Unlock()
		select {
		case <-turn:
		case <-ctx.Done():
			return nil, f.giveUp(turn, ctx.Err())
		}
	} else {
		f.held = true
		f.mu.Unlock()
	}
	_, end := context.WithCancelCause(context.WithoutCancel(ctx))
	return func() error {
		end(errOver)
		return f.unlock()
	}, nil
}

// giveUp leaves the line, or hands on at once if the turn has come meanwhile.
func (f fifoWithContexts) giveUp(turn chan struct{}, cause error) error {
	f.mu.Lock()
	at := slices.Index(f.line, turn)
	if at >= 0 {
		f.line = slices.Delete(f.line, at, at+1)
	}
	f.mu.Unlock()
	if at < 0 {
		_ = f.unlock()
	}
	return cause
}
