package lazyctx

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// What is to happen when a bounded context ends happens once, whatever ends it, and not after it
// was called off.
func TestWhatComesAfterABoundedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for what, ends := range map[string]func(b *Context, leave func()){
			"its time":   func(*Context, func()) { time.Sleep(time.Minute) },
			"its parent": func(_ *Context, leave func()) { leave() },
			"its work":   func(b *Context, _ func()) { b.Finish() },
		} {
			parent, leave := context.WithCancel(t.Context())
			b := Within(parent, time.Minute)
			called, off := 0, 0
			context.AfterFunc(b, func() { called++ })
			stop := context.AfterFunc(b, func() { off++ })
			if !stop() || stop() {
				t.Errorf("%s: what waits cannot be called off, or can twice", what)
			}
			child, cancel := context.WithCancel(b)
			ends(b, leave)
			synctest.Wait()
			if called != 1 || off != 0 || child.Err() == nil {
				t.Errorf("%s: called %d times, what was called off %d, and what was made of it ended with %v", what, called, off, child.Err())
			}
			context.AfterFunc(b, func() { called++ })
			synctest.Wait()
			if called != 2 {
				t.Errorf("%s: nothing is called after the end", what)
			}
			cancel()
			leave()
		}
	})
}

// afterFuncs is a context that counts what waits for its end. Package context asks it, since it
// does not find its own in it.
type afterFuncs struct {
	context.Context
	waiting atomic.Int32
}

func (c *afterFuncs) Value(any) any { return nil }

func (c *afterFuncs) AfterFunc(f func()) (stop func() bool) {
	c.waiting.Add(1)
	off := context.AfterFunc(c.Context, f)
	return func() bool {
		stopped := off()
		if stopped {
			c.waiting.Add(-1)
		}
		return stopped
	}
}

// A bounded context that is over leaves nothing with its parent, which may live as long as the
// program, and no timer.
func TestBounded_LeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent := &afterFuncs{Context: t.Context()}
		for what, ends := range map[string]func(b *Context){
			"its time": func(b *Context) { time.Sleep(time.Minute); b.Finish() },
			"its work": func(b *Context) { b.Finish() },
		} {
			b := Within(parent, time.Minute)
			context.AfterFunc(b, func() {})
			ends(b)
			synctest.Wait()
			if n := parent.waiting.Load(); n != 0 {
				t.Errorf("%s: %d still wait for the parent's end, want none", what, n)
			}
			if b.timer.Stop() {
				t.Errorf("%s: the timer runs on", what)
			}
		}
	})
}
