package redisconn

import (
	"context"
	"errors"
	"sync"
	"time"
)

// deadline is a context that ends at its parent's deadline and, unless it abandons, not when the
// parent is cancelled: a command that is under way may still be carried out, and others may
// overtake it on another connection. Its channel is made by the first call of Done. rueidis does
// not make that call while one goroutine at a time uses the connection: that goroutine then writes
// and reads itself and sets the deadline on the connection, which takes half the time of a reader
// in the background.
type deadline struct {
	parent context.Context //nolint:containedctx // a context is made of its parent
	at     time.Time
	ends   bool // has a deadline

	abandons bool
	alone    bool
	since    int64 // the moment when it was made; only where commands share a connection

	mu     sync.Mutex
	inner  context.Context //nolint:containedctx // made by Done
	cancel context.CancelFunc
}

// callKey is the key of the context's value that is the deadline itself: a dialer finds by it the
// command for which a connection is made.
type callKey struct{}

func untilDeadline(ctx context.Context) *deadline {
	at, ends := ctx.Deadline()
	return &deadline{parent: ctx, at: at, ends: ends}
}

// Deadline implements context.Context. Where commands share a connection and are to be abandoned,
// it hides: to a context that has a channel and no deadline rueidis listens, with one that has it
// leaves the waiting to the connection.
func (d *deadline) Deadline() (time.Time, bool) {
	if d.abandons && !d.alone {
		return time.Time{}, false
	}
	return d.at, d.ends
}

// Value implements context.Context.
func (d *deadline) Value(key any) any {
	if key == (callKey{}) {
		return d
	}
	return d.parent.Value(key)
}

// Done implements context.Context.
func (d *deadline) Done() <-chan struct{} {
	parent := context.Background()
	if d.abandons {
		parent = d.parent
	}
	if !d.ends {
		return parent.Done()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.inner == nil {
		d.inner, d.cancel = context.WithDeadline(parent, d.at)
	}
	return d.inner.Done()
}

// Err implements context.Context.
func (d *deadline) Err() error {
	if d.ends && !time.Now().Before(d.at) {
		return context.DeadlineExceeded
	}
	if d.abandons && d.parent.Err() != nil {
		return d.parent.Err()
	}
	// After Done is closed there is a reason, also if finish has closed it: package context panics
	// without one.
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.inner != nil {
		return d.inner.Err()
	}
	return nil
}

// finish gives the timer back when the call is over, and reports whether somebody who waited was
// let go by it.
func (d *deadline) finish() (passed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cancel != nil {
		passed = errors.Is(d.inner.Err(), context.DeadlineExceeded)
		d.cancel()
	}
	return passed
}
