// Package lazyctx has a context that costs next to nothing until somebody waits for it.
package lazyctx

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// A Context is a context, mostly with a deadline of its own, that costs nothing until somebody
// waits for it: the timer and the link to its parent are made by the first call of Done. A free
// lock is taken and released without either, which is a third of what the core does for it.
type Context struct {
	parent   context.Context //nolint:containedctx // a context is made of its parent
	deadline time.Time

	mu     sync.Mutex
	done   chan struct{}
	err    error
	timer  *time.Timer
	unlink func() bool
	after  map[*func()]struct{} // what is called at the end
}

// Within returns a context that ends with parent, after d, or when Finish is called. Like all that
// is made of a user's context it calls methods of that, so it is made under no mutex.
func Within(parent context.Context, d time.Duration) *Context {
	b := Under(parent)
	b.Limit(d)
	return b
}

// Under returns a context that ends with parent or when Finish is called. How long it may last at
// most can be said by Limit, under a mutex.
func Under(parent context.Context) *Context {
	deadline, _ := parent.Deadline()
	return &Context{parent: parent, deadline: deadline}
}

// Limit ends the context after d, if nothing ends it before. It must be called before the context
// is used.
func (b *Context) Limit(d time.Duration) {
	if ours := time.Now().Add(d); b.deadline.IsZero() || ours.Before(b.deadline) {
		b.deadline = ours
	}
}

// Deadline implements context.Context.
func (b *Context) Deadline() (time.Time, bool) { return b.deadline, !b.deadline.IsZero() }

// Value implements context.Context.
func (b *Context) Value(key any) any { return b.parent.Value(key) }

// Done implements context.Context.
func (b *Context) Done() <-chan struct{} {
	done, first := b.channel()
	if !first {
		return done
	}
	unlink := context.AfterFunc(b.parent, func() { b.End(b.parent.Err()) })
	b.mu.Lock()
	over := b.err != nil
	if !over {
		b.unlink = unlink
	}
	b.mu.Unlock()
	if over {
		unlink()
	}
	return done
}

// channel returns what is closed at the end. It reports whether that is asked for first, and is to
// be linked to the parent.
func (b *Context) channel() (done chan struct{}, first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done != nil {
		return b.done, false
	}
	b.done = make(chan struct{})
	if b.err != nil {
		close(b.done)
		return b.done, false
	}
	if !b.deadline.IsZero() {
		b.timer = time.AfterFunc(time.Until(b.deadline), func() { b.End(context.DeadlineExceeded) })
	}
	return b.done, true
}

// AfterFunc is what package context asks a context for that is not its own: else each context made
// of this one, and each AfterFunc, would start a goroutine to watch it.
func (b *Context) AfterFunc(f func()) (stop func() bool) {
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
func (b *Context) Err() error {
	b.mu.Lock()
	err := b.err
	b.mu.Unlock()
	if err != nil {
		return err
	}
	if err := b.parent.Err(); err != nil {
		b.End(err)
	} else if !b.deadline.IsZero() && !time.Now().Before(b.deadline) {
		b.End(context.DeadlineExceeded)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Finish ends the context when what it bounded is over. It must be called under no mutex:
// to let go of the parent calls methods of that.
func (b *Context) Finish() {
	b.End(context.Canceled)
	b.mu.Lock()
	unlink := b.unlink
	b.unlink = nil
	b.mu.Unlock()
	if unlink != nil {
		unlink()
	}
}

// End ends the context, and calls nothing of the parent.
func (b *Context) End(err error) {
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
	}
	for f := range b.after {
		go (*f)()
	}
	b.after = nil
}

// Unlocked reports whether the context's own mutex can be had within seconds. Tests ask it whether
// the user's code is called under it.
func (b *Context) Unlocked() bool {
	for range 5_000_000 {
		if b.mu.TryLock() {
			b.mu.Unlock()
			return true
		}
		runtime.Gosched() // others may have it for a moment
	}
	return false
}
