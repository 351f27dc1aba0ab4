package interlock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// What is to happen when a bounded context ends happens once, whatever ends it, and not after it was called off.
func TestWhatComesAfterABoundedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for what, ends := range map[string]func(b *bounded, leave func()){
			"its time":   func(*bounded, func()) { time.Sleep(time.Minute) },
			"its parent": func(_ *bounded, leave func()) { leave() },
			"its work":   func(b *bounded, _ func()) { b.finish() },
		} {
			parent, leave := context.WithCancel(t.Context())
			b := within(parent, time.Minute)
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
