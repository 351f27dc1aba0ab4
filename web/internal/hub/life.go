package hub

import (
	"context"
	"sync"
)

// Life is how long work goes on that no request waits for. Close ends it and waits for it.
type Life struct {
	ctx    context.Context //nolint:containedctx // it bounds streams and watches
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup // added to under mu, and never once closed
}

// NewLife returns a life that has begun.
func NewLife() *Life {
	ctx, cancel := context.WithCancel(context.Background())
	return &Life{ctx: ctx, cancel: cancel}
}

// Context returns a context that ends when Close is called.
func (l *Life) Context() context.Context { return l.ctx }

// Begin reports whether work may begin, at the end of which the caller calls Done. Close waits for
// that.
func (l *Life) Begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.work.Add(1)
	}
	return !l.closed
}

// Done ends the work that Begin allowed.
func (l *Life) Done() { l.work.Done() }

// Go calls f in a goroutine that Close waits for, and reports true; after Close it does nothing.
func (l *Life) Go(f func()) bool {
	if !l.Begin() {
		return false
	}
	go func() {
		defer l.Done()
		f()
	}()
	return true
}

// Close ends the context, waits for the work that has begun, and lets none begin.
func (l *Life) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	l.work.Wait()
}
