package interlock_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/memlock"
)

func TestSemaphore_ImpossibleNumbers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		for _, n := range []int{0, -1, math.MinInt, math.MaxInt32 + 1} {
			s := c.Semaphore("s", n)
			if s.Err() == nil || !strings.Contains(s.Err().Error(), "want 1 to 2147483647") {
				t.Errorf("%d permits: %v", n, s.Err())
			}
			_, err := s.Acquire(t.Context(), 1)
			matches(t, err, s.Err())
		}
		s := c.Semaphore("s", 3)
		for _, w := range []int{0, -1, 4, math.MaxInt} {
			_, err := s.Acquire(t.Context(), w)
			_, tryErr := s.TryAcquire(t.Context(), w)
			doErr := s.Do(t.Context(), w, func(context.Context) error { t.Error("fn ran"); return nil })
			for _, err := range []error{err, tryErr, doErr} {
				if err == nil || !strings.Contains(err.Error(), "want 1 to 3") {
					t.Errorf("%d of 3: %v", w, err)
				}
			}
		}
		if n := store.Calls(); n != 0 {
			t.Errorf("%d calls", n)
		}
	})
}

func TestSemaphore_FirstComeFirstServedByWeight(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, a, b := two(t)
		sa, sb := a.Semaphore("s", 5), b.Semaphore("s", 5)
		four := must[*interlock.Lease](t)(sa.Acquire(t.Context(), 4))
		three := background(func() (*interlock.Lease, error) { return sb.Acquire(t.Context(), 3) })
		synctest.Wait()
		// One is free, and the fifth would fit: but three wait for it.
		for _, s := range []*interlock.Semaphore{sa, sb} {
			_, err := s.TryAcquire(t.Context(), 1)
			matches(t, err, interlock.ErrHeld)
		}
		var ones []*attempt
		for _, s := range []*interlock.Semaphore{sb, sa, sb} {
			ones = append(ones, background(func() (*interlock.Lease, error) { return s.Acquire(t.Context(), 1) }))
			synctest.Wait()
		}
		if three.over() || ones[0].over() {
			t.Fatal("overtaken")
		}
		release(t, four)
		held := three.wait(t)
		release(t, ones[0].wait(t)) // 3 + 1 + 1 fit
		one := ones[1].wait(t)
		if held.Fence() != 0 || interlock.Fence(held.Context(), "s") != 0 {
			t.Error("permits have no token")
		}
		release(t, held, one, ones[2].wait(t))
	})
}

func TestSemaphore_NeverMoreAndNeverFewer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const permits = 7
		store := memlock.New()
		var taken, most atomic.Int32
		var all sync.WaitGroup
		for range 6 {
			c := newClient(t, store.Share(), nil)
			for range 6 {
				all.Go(func() {
					for range 40 {
						w := 1 + rand.IntN(permits)
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(100))*time.Millisecond)
						err := c.Semaphore("s", permits).Do(ctx, w, func(context.Context) error {
							n := taken.Add(int32(w))
							for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
							}
							time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
							taken.Add(int32(-w))
							return nil
						})
						cancel()
						if err != nil {
							matches(t, err, context.DeadlineExceeded)
						}
					}
				})
			}
		}
		all.Wait()
		if n := most.Load(); n > permits || n < permits-1 {
			t.Errorf("at most %d of %d were taken", n, permits)
		}
		synctest.Wait()
		if line := claims(t, store, "s"); len(line) != 0 {
			t.Errorf("%d claims are left", len(line))
		}
		c := newClient(t, store, nil)
		release(t, must[*interlock.Lease](t)(c.Semaphore("s", permits).TryAcquire(t.Context(), permits)))
	})
}

func TestSemaphore_ConcurrentTriesSucceedWhilePermitsAreFree(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const permits = 100
		store, a, b := two(t)
		leases := make(chan *interlock.Lease, permits)
		var all sync.WaitGroup
		for range permits / 2 {
			for _, c := range []*interlock.Client{a, b} {
				all.Go(func() {
					l, err := c.Semaphore("s", permits).TryAcquire(t.Context(), 1)
					if err != nil {
						t.Error(err)
						return
					}
					leases <- l
				})
			}
		}
		all.Wait()
		_, err := a.Semaphore("s", permits).TryAcquire(t.Context(), 1)
		matches(t, err, interlock.ErrHeld)
		close(leases)
		for l := range leases {
			release(t, l)
		}
		if n := len(claims(t, store, "s")); n != 0 {
			t.Errorf("%d claims", n)
		}
	})
}
