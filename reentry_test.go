package interlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

func TestReentry_WithoutTheOptionItIsADeadlockAndSaysSoAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		outer := lock(t.Context(), t, c.RWMutex("m"))
		ctx := lock(outer.Context(), t, c.Mutex("between")).Context() // however far down
		start := time.Now()
		for call, err := range everyCall(ctx, c, "m") {
			switch call {
			case "Mutex.Err", "RWMutex.Err", "Semaphore.Err", "Election.Err", "Multi.Err", "Election.Leader", "Election.Observe":
			default:
				matches(t, err, interlock.ErrDeadlock)
			}
		}
		if time.Since(start) != 0 {
			t.Errorf("took %v", time.Since(start))
		}
		if n := len(claims(t, store, "m")) + len(claims(t, store, "good")); n != 1 {
			t.Errorf("%d claims", n)
		}
		if err := outer.Err(); err != nil {
			t.Error(err)
		}
	})
}

func TestReentry_AWriterAdmitsReadersAReaderAdmitsNoWriter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		m := c.RWMutex("m", interlock.Reentrant())
		write := lock(t.Context(), t, m)
		read := must[*interlock.Lease](t)(m.RLock(write.Context()))
		again := lock(read.Context(), t, m)
		if write.Fence() == 0 || again.Fence() != write.Fence() || read.Fence() != 0 || interlock.Fence(read.Context(), "m") != write.Fence() {
			t.Errorf("tokens %d, %d inside, %d for reading, %d in its context", write.Fence(), again.Fence(), read.Fence(), interlock.Fence(read.Context(), "m"))
		}
		release(t, write, read)
		if n := len(claims(t, store, "m")); n != 1 || again.Err() != nil {
			t.Errorf("%d claims with one lease left: %v", n, again.Err())
		}
		release(t, again)
		if n := len(claims(t, store, "m")); n != 0 {
			t.Errorf("%d claims after the last", n)
		}

		read = must[*interlock.Lease](t)(m.RLock(t.Context()))
		inner := must[*interlock.Lease](t)(m.RLock(read.Context()))
		_, err := m.Lock(inner.Context())
		matches(t, err, interlock.ErrDeadlock)
		release(t, read, inner)
	})
}

func TestReentry_ALossEndsAll(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		m := c.Mutex("m", interlock.Reentrant())
		outer := lock(t.Context(), t, m)
		inner := lock(outer.Context(), t, m)
		released := lock(outer.Context(), t, m)
		ctx := inner.Context()
		release(t, released)
		store.Lose("m")
		for _, l := range []*interlock.Lease{outer, inner} {
			matches(t, context.Cause(l.Context()), interlock.ErrLost)
			matches(t, l.Release(), interlock.ErrLost)
		}
		matches(t, released.Err(), interlock.ErrReleased)
		// What the context held is over, so it waits like anybody.
		release(t, lock(context.WithoutCancel(ctx), t, c.Mutex("m")))
	})
}

func TestReentry_GoroutinesThatShareTheContextShareTheLock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, other := two(t)
		m := c.Mutex("m", interlock.Reentrant())
		err := m.Do(t.Context(), func(ctx context.Context) error {
			if _, err := other.Mutex("m", interlock.Reentrant()).TryLock(ctx); !errors.Is(err, interlock.ErrHeld) {
				t.Errorf("another client: %v", err)
			}
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					if err := m.Do(ctx, func(ctx context.Context) error { time.Sleep(time.Second); return ctx.Err() }); err != nil {
						t.Error(err)
					}
				})
			}
			time.Sleep(time.Millisecond)
			if n := len(claims(t, store, "m")); n != 1 {
				t.Errorf("%d claims", n)
			}
			all.Wait()
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// The outer lease is released while others enter by its context: each of them gets a lease that
// counts, or waits in line.
func TestReentry_RacingWithTheReleaseOfTheOuter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		m := c.Mutex("m", interlock.Reentrant())
		for range 200 {
			outer := lock(t.Context(), t, m)
			ctx := context.WithoutCancel(outer.Context())
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					l, err := m.Lock(ctx)
					if err != nil {
						t.Error(err)
						return
					}
					if err := l.Err(); err != nil || len(claims(t, store, "m")) != 1 {
						t.Errorf("%v with %d claims", err, len(claims(t, store, "m")))
					}
					release(t, l)
				})
			}
			release(t, outer)
			all.Wait()
		}
		if n := len(claims(t, store, "m")); n != 0 {
			t.Errorf("%d claims", n)
		}
	})
}

func TestReentry_PermitsAreLeasesOfTheirOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, other := two(t)
		s := c.Semaphore("s", 3)
		one := must[*interlock.Lease](t)(s.Acquire(t.Context(), 1))
		two := must[*interlock.Lease](t)(s.Acquire(one.Context(), 1))
		if n := len(claims(t, store, "s")); n != 2 {
			t.Errorf("%d claims", n)
		}
		_, err := s.Acquire(two.Context(), 2) // would wait for itself
		matches(t, err, interlock.ErrDeadlock)
		third := must[*interlock.Lease](t)(other.Semaphore("s", 3).Acquire(t.Context(), 1))
		waiting := background(func() (*interlock.Lease, error) { return s.Acquire(two.Context(), 1) }) // for another, which ends
		synctest.Wait()
		if waiting.over() {
			t.Error("more permits than there are")
		}
		release(t, third)
		release(t, waiting.wait(t), two, one)
	})
}

func TestReentry_AMutexIsNotEnteredByAPermit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, c, _ := two(t)
		permit := must[*interlock.Lease](t)(c.Semaphore("s", 3).Acquire(t.Context(), 1))
		l, err := c.Mutex("s", interlock.Reentrant()).Lock(permit.Context())
		if err == nil {
			t.Errorf("one of three permits is a mutex with the token %d", l.Fence())
		}
		matches(t, err, driver.ErrRefused)
		release(t, permit)
	})
}

// What a re-entry cannot have it is refused, before anything is done; what is the same as that of
// the hold it has.
func TestReentry_ChoicesOfItsOwnAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		outer := lock(t.Context(), t, c.Mutex("m", interlock.MaxHold(time.Hour), interlock.Note("outer")))
		for choice, option := range map[string]interlock.LockOption{
			"TTL": interlock.TTL(time.Minute), "Grace": interlock.Grace(time.Second), "MinHold": interlock.MinHold(time.Second),
			"MaxHold": interlock.MaxHold(time.Minute), "Note": interlock.Note("inner"), "session (Isolated)": interlock.Isolated(),
		} {
			_, err := c.Mutex("m", interlock.Reentrant(), option).Lock(outer.Context())
			matches(t, err, errors.ErrUnsupported)
			if err == nil || !strings.Contains(err.Error(), "no "+choice+" of its own") {
				t.Errorf("%s: %v", choice, err)
			}
		}
		inner := lock(outer.Context(), t, c.Mutex("m", interlock.Reentrant(), interlock.MaxHold(time.Hour), interlock.Note("outer")))
		release(t, inner, outer)
		if n := len(claims(t, store, "m")); n != 0 {
			t.Errorf("%d claims are kept", n)
		}
	})
}

// A11: re-entry gives the lease another time or another token, or forgets it.
func TestA11_ReentryNeitherShortensNorRenumbers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		m := c.RWMutex("m", interlock.Reentrant())
		outer := lock(t.Context(), t, m)
		fence := outer.Fence()
		release(t, must[*interlock.Lease](t)(m.RLock(outer.Context())))
		if n := len(claims(t, store, "m")); n != 1 {
			t.Fatalf("%d claims after an inner lease left, want the outer one's", n)
		}
		stack := []*interlock.Lease{outer}
		for range 300 {
			time.Sleep(time.Duration(rand.IntN(3000)) * time.Millisecond)
			until := outer.Until()
			if len(stack) == 1 || rand.IntN(2) == 0 && len(stack) < 10 {
				write := rand.IntN(2) == 0
				ctx := stack[len(stack)-1].Context()
				l, err := m.RLock(ctx)
				if write {
					release(t, l)
					l, err = m.Lock(ctx)
				}
				stack = append(stack, must[*interlock.Lease](t)(l, err))
				if write && l.Fence() != fence || interlock.Fence(l.Context(), "m") != fence {
					t.Fatalf("token %d, in context %d, want %d as of the outer lease", l.Fence(), interlock.Fence(l.Context(), "m"), fence)
				}
			} else {
				i := 1 + rand.IntN(len(stack)-1) // in any order
				release(t, stack[i])
				stack = slices.Delete(stack, i, i+1)
			}
			if got := outer.Until(); outer.Err() != nil || outer.Fence() != fence || got.Before(until) {
				t.Fatalf("outer: %v, token %d of %d, until %v of %v", outer.Err(), outer.Fence(), fence, got, until)
			}
			if n := len(claims(t, store, "m")); n != 1 {
				t.Fatalf("%d claims while %d leases are held, want one for all", n, len(stack))
			}
		}
		release(t, stack...)
		if n := len(claims(t, store, "m")); n != 0 {
			t.Errorf("%d claims after the last", n)
		}
	})
}

// A12: the owner is a thread, which asynchronous code does not keep.
func TestA12_TheOwnerIsTheLeaseAndItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		m := c.Mutex("m", interlock.Reentrant())
		l := lock(t.Context(), t, m)
		// The same goroutine with another context owns nothing.
		_, err := m.TryLock(t.Context())
		matches(t, err, interlock.ErrHeld)
		// Another goroutine with the lease's context does, and may release what it was handed.
		done := make(chan struct{})
		go func() {
			defer close(done)
			inner, err := m.TryLock(l.Context())
			if err != nil {
				t.Errorf("another goroutine, with the lease's context: %v, want it to own the lock", err)
				return
			}
			release(t, inner, l)
		}()
		<-done
		if n := len(claims(t, store, "m")); n != 0 {
			t.Errorf("%d claims", n)
		}
	})
}
