package interlock

import (
	"context"
	"sync"
	"time"
)

// bounded is a context with a deadline of its own that costs nothing until somebody waits for it: the timer and the
// link to its parent are made by the first call of Done. A free lock is taken and released without either, which is a
// third of what the core does for it.
type bounded struct {
	parent   context.Context //nolint:containedctx // a context is made of its parent
	deadline time.Time

	mu     sync.Mutex
	done   chan struct{}
	err    error
	timer  *time.Timer
	unlink func() bool
	after  map[*func()]struct{} // what is called at the end
}

// within returns a context that ends with parent, after d, or when finish is called.
func within(parent context.Context, d time.Duration) *bounded {
	b := &bounded{parent: parent, deadline: time.Now().Add(d)}
	if theirs, ok := parent.Deadline(); ok && theirs.Before(b.deadline) {
		b.deadline = theirs
	}
	return b
}

// Deadline implements context.Context.
func (b *bounded) Deadline() (time.Time, bool) { return b.deadline, true }

// Value implements context.Context.
func (b *bounded) Value(key any) any { return b.parent.Value(key) }

// Done implements context.Context.
func (b *bounded) Done() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done != nil {
		return b.done
	}
	b.done = make(chan struct{})
	if b.err != nil {
		close(b.done)
		return b.done
	}
	b.timer = time.AfterFunc(time.Until(b.deadline), func() { b.end(context.DeadlineExceeded) })
	b.unlink = context.AfterFunc(b.parent, func() { b.end(b.parent.Err()) })
	return b.done
}

// AfterFunc is what package context asks a context for that is not its own: else each context made of this one, and each AfterFunc, would
// start a goroutine to watch it.
func (b *bounded) AfterFunc(f func()) (stop func() bool) {
	b.Done()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		go f()
		return func() bool { return false }
	}
	if b.after == nil {
		b.after = map[*func()]struct{}{}
	}
	b.after[&f] = struct{}{}
	return func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		_, waits := b.after[&f]
		delete(b.after, &f)
		return waits
	}
}

// Err implements context.Context.
func (b *bounded) Err() error {
	b.mu.Lock()
	err := b.err
	b.mu.Unlock()
	if err != nil {
		return err
	}
	if err := b.parent.Err(); err != nil {
		b.end(err)
	} else if !time.Now().Before(b.deadline) {
		b.end(context.DeadlineExceeded)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// finish ends the context when what it bounded is over.
func (b *bounded) finish() { b.end(context.Canceled) }

func (b *bounded) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return
	}
	b.err = err
	if b.done != nil {
		close(b.done)
	}
	if b.timer != nil {
		b.timer.Stop()
		b.unlink()
	}
	for f := range b.after {
		go (*f)()
	}
	b.after = nil
}
