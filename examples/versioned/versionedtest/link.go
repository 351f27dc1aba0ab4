package versionedtest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock/examples/versioned"
)

// link is the way of one driver to the table. A request that was sent is carried out when it arrives, also if nobody waits
// for its answer any more.
type link struct {
	table versioned.Table
	calls atomic.Int64

	mu                sync.Mutex
	requests, replies chan struct{} // closed when what is held may go on; nil while nothing is
	cut               bool
	straggler         *straggler
}

// straggler is the request that others overtake.
type straggler struct {
	before  int // requests that pass
	met     bool
	deliver chan struct{}
}

// send carries one request and its reply.
func send[T any](ctx context.Context, l *link, request func(context.Context) (T, error)) (answer T, err error) {
	if err := ctx.Err(); err != nil {
		return answer, err
	}
	l.calls.Add(1)
	done := make(chan struct{})
	var got T
	var failed error
	straggles := l.straggles()
	go func() {
		defer close(done)
		l.pass(&l.requests)
		if straggles != nil {
			<-straggles
		}
		if failed = l.broken(); failed == nil {
			got, failed = request(context.WithoutCancel(ctx))
		}
		l.pass(&l.replies)
	}()
	select {
	case <-done:
		return got, failed
	case <-ctx.Done():
		return answer, ctx.Err()
	}
}

// straggles returns what holds the next request alone; nil: nothing.
func (l *link) straggles() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.straggler
	switch {
	case s == nil || s.met:
		return nil
	case s.before > 0:
		s.before--
		return nil
	}
	s.met = true
	return s.deliver
}

func (l *link) pass(way *chan struct{}) {
	l.mu.Lock()
	held := *way
	l.mu.Unlock()
	if held != nil {
		<-held
	}
}

var errCut = errors.New("the link is cut")

func (l *link) broken() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return errCut
	}
	return nil
}

// hold holds what goes these ways.
func (l *link) hold(ways ...*chan struct{}) (heal func()) {
	held := make(chan struct{})
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, way := range ways {
		*way = held
	}
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, way := range ways {
			*way = nil
		}
		close(held)
	})
}

// Load and CompareAndSwap implement versioned.Table.
func (l *link) Load(ctx context.Context, name string) (value []byte, version int64, err error) {
	type row struct {
		value   []byte
		version int64
	}
	r, err := send(ctx, l, func(ctx context.Context) (r row, err error) {
		r.value, r.version, err = l.table.Load(ctx, name)
		return r, err
	})
	return r.value, r.version, err
}

func (l *link) CompareAndSwap(ctx context.Context, name string, value []byte, version int64) (swapped bool, err error) {
	return send(ctx, l, func(ctx context.Context) (bool, error) { return l.table.CompareAndSwap(ctx, name, value, version) })
}
