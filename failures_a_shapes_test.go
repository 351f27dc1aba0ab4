package interlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

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

// A13: the reply to an acquire is lost, and its repetition finds the lock taken: by itself.
func TestA13_ALostReplyBlocksNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		d := &tap{Driver: store}
		lose := true
		d.after = func(op string, _ driver.Claim, err error) error {
			if op == "acquire" && lose {
				lose = false
				return errors.New("connection reset")
			}
			return err
		}
		c := newClient(t, d, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		l, err := c.Mutex("m").Lock(ctx)
		if err != nil {
			t.Fatalf("the reply was lost, and the lock is held by the attempt that nobody wants any more: %v", err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("took %v", took)
		}
		release(t, l)
		lose = true
		_, err = c.Mutex("m").TryLock(ctx)
		matches(t, err, interlock.ErrUnavailable)
		time.Sleep(time.Second)
		if n := len(claims(t, store, "m")); n != 0 {
			t.Errorf("%d claims a second after a try that was not answered", n)
		}
	})
}

// A14: several locks at once are kept in part, or two who want the same ones block each other.
func TestA14_SeveralLocksAreAllOrNothingWithoutDeadlock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		names := []string{"a", "b", "c", "d", "e", "f"}
		var holders [6]atomic.Int32
		var all sync.WaitGroup
		for range 16 {
			c := newClient(t, store.Share(), nil)
			all.Go(func() {
				for range 150 {
					set := slices.Clone(names)
					rand.Shuffle(len(set), func(i, j int) { set[i], set[j] = set[j], set[i] })
					set = set[:1+rand.IntN(len(set))]
					set = append(set, set[0])
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
					l, err := c.Multi(set).Lock(ctx)
					cancel()
					if err != nil {
						t.Errorf("%v: not locked in ten minutes: %v", set, err)
						return
					}
					for _, name := range set[:len(set)-1] {
						if n := holders[name[0]-'a'].Add(1); n != 1 {
							t.Errorf("%d holders of %s", n, name)
						}
					}
					time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
					for _, name := range set[:len(set)-1] {
						holders[name[0]-'a'].Add(-1)
					}
					release(t, l)
				}
			})
		}
		all.Wait()
		if t.Failed() {
			return
		}
		// One of them is taken: none is kept.
		a, b := newClient(t, store, nil), newClient(t, store.Share(), nil)
		l := lock(t.Context(), t, a.Mutex("c"))
		_, err := b.Multi(names).TryLock(t.Context())
		matches(t, err, interlock.ErrHeld)
		_, err = b.Multi(names, interlock.Wait(time.Second)).Lock(t.Context())
		matches(t, err, interlock.ErrHeld)
		synctest.Wait()
		for _, name := range names {
			if n := len(claims(t, store, name)); n > 0 && name != "c" {
				t.Errorf("%d claims of %s are kept, want none", n, name)
			}
		}
		release(t, l)
	})
}

// A15: permits never come back, or come back twice.
func TestA15_PermitsComeBackOnceAlsoFromTheDead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const permits = 5
		store := memlock.New()
		watch := newClient(t, store, nil)
		free := func() (n int) {
			t.Helper()
			var leases []*interlock.Lease
			for {
				l, err := watch.Semaphore("s", permits).TryAcquire(t.Context(), 1)
				if err != nil {
					matches(t, err, interlock.ErrHeld)
					release(t, leases...)
					return len(leases)
				}
				leases = append(leases, l)
			}
		}
		for range 3 * permits {
			l := must[*interlock.Lease](t)(watch.Semaphore("s", permits).TryAcquire(t.Context(), 2))
			release(t, l, l)
			if n := free(); n != permits {
				t.Fatalf("%d of %d permits are free after a release", n, permits)
			}
		}
		for _, kill := range []func(*memlock.Driver){
			func(d *memlock.Driver) { d.Stall() },       // nobody sees the death: the time is over
			func(d *memlock.Driver) { d.EndSessions() }, // the store sees it
		} {
			for range permits {
				d := store.Share()
				c := must[*interlock.Client](t)(interlock.New(d, nil))
				must[*interlock.Lease](t)(c.Semaphore("s", permits).Acquire(t.Context(), 1))
				kill(d)
				t.Cleanup(func() { d.EndSessions(); _ = c.Close() })
			}
			time.Sleep(15 * time.Second)
			if n := free(); n != permits {
				t.Fatalf("%d of %d permits are free a TTL after their holders died", n, permits)
			}
		}
	})
}

// A16: a semaphore over stores that cannot count together.
func TestA16_NoSemaphoreWhereTheStoreCannotCount(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.NewPersonality(memlock.Personality{NoCount: true})
		c := newClient(t, store, nil)
		s := c.Semaphore("s", 2)
		_, err := s.Acquire(t.Context(), 1)
		matches(t, err, errors.ErrUnsupported)
		matches(t, s.Err(), errors.ErrUnsupported)
		if n := store.Calls(); n != 0 {
			t.Errorf("%d calls", n)
		}
	})
}
