package interlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/memlock"
)

// two returns two clients of one store, as two processes would have them.
func two(t *testing.T) (store *memlock.Driver, a, b *interlock.Client) {
	t.Helper()
	store = memlock.New()
	return store, newClient(t, store, &interlock.Options{Owner: "ann"}), newClient(t, store.Share(), &interlock.Options{Owner: "bob"})
}

func TestTryLock_NamesTheHolder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, a, b := two(t)
		l := lock(t.Context(), t, a.Mutex("m", interlock.Note("nightly")))
		for _, c := range []*interlock.Client{a, b} { // from the same process and from another
			start := time.Now()
			_, err := c.Mutex("m").TryLock(t.Context())
			matches(t, err, interlock.ErrHeld)
			var held *interlock.HeldError
			if !errors.As(err, &held) || held.Holder == nil {
				t.Fatalf("%v names nobody", err)
			}
			if h := held.Holder; h.Owner.Name != "ann" || h.Note != "nightly" || h.Fence != l.Fence() || !h.Since.Equal(start) {
				t.Errorf("holder %+v", h)
			}
			if want := `interlock: try "m": held by ann since ` + start.Format(time.RFC3339) + " (nightly)"; err.Error() != want {
				t.Errorf("%q, want %q", err, want)
			}
			if time.Since(start) != 0 {
				t.Errorf("a try took %v", time.Since(start))
			}
		}
		release(t, l)
		release(t, must[*interlock.Lease](t)(b.Mutex("m").TryLock(t.Context())))
	})
}

func TestTryLock_DoesNotOvertakeWaiters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, a, b := two(t)
		l := lock(t.Context(), t, a.RWMutex("m"))
		writer := background(func() (*interlock.Lease, error) { return b.RWMutex("m").Lock(t.Context()) })
		synctest.Wait()
		for _, c := range []*interlock.Client{a, b} {
			_, err := c.RWMutex("m").TryRLock(t.Context())
			matches(t, err, interlock.ErrHeld)
		}
		release(t, l)
		release(t, writer.wait(t))
	})
}

func TestTryLock_UnavailableAtOnceWhenTheStoreFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, a, _ := two(t)
		broken := errors.New("connection refused")
		store.Fail(broken)
		defer store.Fail(nil)
		start := time.Now()
		_, err := a.Mutex("m").TryLock(t.Context())
		matches(t, err, interlock.ErrUnavailable, broken)
		if errors.Is(err, interlock.ErrHeld) || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestWait_BoundsTheWaitingAndNothingElse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, a, b := two(t)
		l := lock(t.Context(), t, a.Mutex("m"))
		m := b.Mutex("m", interlock.Wait(3*time.Second))
		start := time.Now()
		_, err := m.Lock(t.Context())
		matches(t, err, interlock.ErrHeld)
		if errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		release(t, l)
		l = lock(t.Context(), t, m)
		time.Sleep(time.Minute)
		if err := l.Err(); err != nil {
			t.Errorf("a minute later: %v", err)
		}
		release(t, l)
	})
}

func TestWait_BoundsAlsoTheWaitForAStoreThatDoesNotAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, a, _ := two(t)
		defer store.Stall()()
		start := time.Now()
		_, err := a.Mutex("m", interlock.Wait(3*time.Second)).Lock(t.Context())
		matches(t, err, interlock.ErrUnavailable)
		if d := time.Since(start); d != 3*time.Second {
			t.Errorf("after %v, want 3s", d)
		}
	})
}

func TestWait_ZeroTriesOnceAndRunsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, a, b := two(t)
		l := lock(t.Context(), t, a.Mutex("m"))
		start := time.Now()
		err := b.Mutex("m", interlock.Wait(0)).Do(t.Context(), func(context.Context) error {
			t.Error("fn ran")
			return nil
		})
		matches(t, err, interlock.ErrHeld)
		if time.Since(start) != 0 {
			t.Errorf("took %v", time.Since(start))
		}
		release(t, l)
		ran := false
		if err := b.Mutex("m", interlock.Wait(0)).Do(t.Context(), func(context.Context) error { ran = true; return nil }); err != nil || !ran {
			t.Errorf("free: %v, ran: %v", err, ran)
		}
	})
}

func TestLock_AWaitThatEndsWhileHeldMatchesBothReasons(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, a, b := two(t)
		defer lock(t.Context(), t, a.Mutex("m")).Release()
		for _, c := range []*interlock.Client{a, b} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := c.Mutex("m").Lock(ctx)
			cancel()
			matches(t, err, interlock.ErrHeld, context.DeadlineExceeded)

			why := errors.New("user went away")
			caused, stop := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { stop(why) })
			_, err = c.Mutex("m").Lock(caused)
			matches(t, err, interlock.ErrHeld, context.Canceled, why)
			var held *interlock.HeldError
			if !errors.As(err, &held) || held.Holder.Owner.Name != "ann" {
				t.Errorf("%v does not name ann", err)
			}
		}
	})
}

func TestLock_TooManyWaiters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newClient(t, memlock.New(), &interlock.Options{MaxWaiters: 3})
		l := lock(t.Context(), t, c.Mutex("m"))
		var waiting []*attempt
		for range 3 {
			waiting = append(waiting, background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(t.Context()) }))
			synctest.Wait()
		}
		_, err := c.Mutex("m").Lock(t.Context())
		matches(t, err, interlock.ErrTooManyWaiters)
		_, err = c.Mutex("m").TryLock(t.Context())
		matches(t, err, interlock.ErrHeld)
		release(t, lock(t.Context(), t, c.Mutex("another")), l)
		for _, w := range waiting {
			release(t, w.wait(t))
		}
	})
}

// Somebody who gave up while the store was asked for it does not make the store unavailable for
// others.
func TestTryLock_AfterAnotherGaveUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		if err := c.Health(t.Context()); err != nil {
			t.Fatal(err)
		}
		answer := store.StallReplies() // the store is slow
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(ctx) })
		synctest.Wait()
		waiting := background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(t.Context()) })
		synctest.Wait()
		cancel()
		<-gaveUp.done
		answer()
		_, err := c.Mutex("m").TryLock(t.Context())
		matches(t, err, interlock.ErrHeld)
		if errors.Is(err, interlock.ErrUnavailable) {
			t.Errorf("%v, though somebody else of this process is before it", err)
		}
		release(t, waiting.wait(t))
	})
}
