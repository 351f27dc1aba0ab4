package interlock_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
)

func TestFence_IsThatOfTheInnermostLeaseOfTheName(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, c, other := two(t)
		if got := interlock.Fence(t.Context(), "a"); got != 0 {
			t.Errorf("outside: %d", got)
		}
		a := lock(t.Context(), t, c.Mutex("a"))
		release(t, lock(t.Context(), t, c.Mutex("b")))
		err := c.Mutex("b").Do(a.Context(), func(ctx context.Context) error {
			if fa, fb := interlock.Fence(ctx, "a"), interlock.Fence(ctx, "b"); fa != a.Fence() || fb == 0 || fb == fa {
				t.Errorf("fences %d of a and %d of b; a's is %d", fa, fb, a.Fence())
			}
			if f := interlock.Fence(ctx, "c"); f != 0 {
				t.Errorf("unknown name: %d", f)
			}
			return other.RWMutex("r").RDo(ctx, func(ctx context.Context) error {
				if f := interlock.Fence(ctx, "r"); f != 0 {
					t.Errorf("reader: %d", f)
				}
				return nil
			})
		})
		if err != nil {
			t.Error(err)
		}
		release(t, a)
	})
}

func TestDo_JoinsBothContexts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, c, _ := two(t)
		type key struct{}
		why := errors.New("user went away")
		ctx, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
		time.AfterFunc(time.Second, func() { cancel(why) })
		start := time.Now()
		err := c.Mutex("m").Do(ctx, func(ctx context.Context) error {
			if ctx.Value(key{}) != "value" {
				t.Error("the value is gone")
			}
			<-ctx.Done()
			if time.Since(start) != time.Second || !errors.Is(context.Cause(ctx), why) {
				t.Errorf("ended after %v: %v", time.Since(start), context.Cause(ctx))
			}
			time.Sleep(time.Minute) // Do waits for fn, however long that takes, and the lock is kept
			if _, err := c.Mutex("m").TryLock(context.Background()); !errors.Is(err, interlock.ErrHeld) {
				t.Errorf("while fn runs: %v", err)
			}
			return ctx.Err()
		})
		if err != context.Canceled || time.Since(start) != time.Second+time.Minute { //nolint:errorlint // exactly what fn returned
			t.Errorf("%v after %v", err, time.Since(start))
		}
		deadline := time.Now().Add(time.Hour)
		ctx2, cancel2 := context.WithDeadline(t.Context(), deadline)
		defer cancel2()
		_ = c.Mutex("m").Do(ctx2, func(ctx context.Context) error {
			if d, ok := ctx.Deadline(); !ok || !d.Equal(deadline) {
				t.Errorf("deadline %v", d)
			}
			return nil
		})
	})
}

func TestDo_ReturnsWhatFnReturnedAndALossBesides(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		mine := errors.New("mine")
		if err := c.Mutex("m").Do(t.Context(), func(context.Context) error { return mine }); err != mine { //nolint:errorlint // exactly that
			t.Errorf("%v, want what fn returned", err)
		}
		err := c.Mutex("m").Do(t.Context(), func(ctx context.Context) error {
			store.Lose("m")
			<-ctx.Done()
			matches(t, context.Cause(ctx), interlock.ErrLost)
			return mine
		})
		matches(t, err, mine, interlock.ErrLost)
		// Lost at the store, and not known here before the release says so: too late for fn, not
		// for the result.
		err = c.Mutex("m").Do(t.Context(), func(context.Context) error {
			store.Forget("m")
			return nil
		})
		matches(t, err, interlock.ErrLost)
	})
}

func TestDo_ReleasesAfterPanicAndGoexit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		func() {
			defer func() {
				if r := recover(); r != "boom" {
					t.Errorf("recovered %v", r)
				}
			}()
			_ = c.Mutex("m").Do(t.Context(), func(context.Context) error { panic("boom") })
		}()
		if n := len(claims(t, store, "m")); n != 0 {
			t.Errorf("%d claims after a panic", n)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = c.Mutex("m").Do(t.Context(), func(context.Context) error { runtime.Goexit(); return nil })
		}()
		<-done
		if n := len(claims(t, store, "m")); n != 0 {
			t.Errorf("%d claims after Goexit", n)
		}
	})
}
