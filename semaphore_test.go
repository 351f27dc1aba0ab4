package interlock_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
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

// inTen is a store of which each request takes 10 ms.
func inTen(store *memlock.Driver) *spy {
	d := &spy{Driver: store}
	d.ahead(func(ctx context.Context, _ string, _ driver.Claim) error {
		slow(ctx, 10*time.Millisecond)
		return nil
	})
	return d
}

// A hundred goroutines that want what is free do not ask one after the other.
func TestSemaphore_WhatIsFreeIsTakenSideBySide(t *testing.T) {
	for _, try := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			const permits = 100
			d := inTen(memlock.New())
			c := newClient(t, d, nil)
			release(t, must[*interlock.Lease](t)(c.Semaphore("s", permits).Acquire(t.Context(), 1))) // and a session is open
			before, start := d.count("acquire"), time.Now()
			var all []*attempt
			for range permits {
				all = append(all, background(func() (*interlock.Lease, error) {
					if try {
						return c.Semaphore("s", permits).TryAcquire(t.Context(), 1)
					}
					return c.Semaphore("s", permits).Acquire(t.Context(), 1)
				}))
			}
			var leases []*interlock.Lease
			for _, a := range all {
				leases = append(leases, a.wait(t))
			}
			if rounds := time.Since(start) / (10 * time.Millisecond); rounds > 9 {
				t.Errorf("%d goroutines had %[1]d free permits after %d rounds of 10 ms, want 9 at most", permits, rounds)
			}
			if n := d.count("acquire") - before; n > permits {
				t.Errorf("%d requests for %d permits", n, permits)
			}
			release(t, leases...)
		})
	}
}

// Who wants few does not overtake who wants many, nor a later one an earlier one, also where they
// are asked for side by side.
func TestSemaphore_SideBySideNobodyIsOvertaken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const permits = 30
		d := &spy{Driver: memlock.New()}
		d.ahead(func(ctx context.Context, _ string, c driver.Claim) error {
			slow(ctx, 10*time.Millisecond)
			if c.Queue {
				slow(ctx, time.Millisecond) // who is to stand in line comes after what was asked for beside him
			}
			return nil
		})
		c := newClient(t, d, nil)
		s := c.Semaphore("s", permits)
		var all []*attempt
		want := func(n, w int) {
			for range n {
				all = append(all, background(func() (*interlock.Lease, error) { return s.Acquire(t.Context(), w) }))
				synctest.Wait()
			}
		}
		want(20, 1)
		want(1, 15) // does not fit beside the twenty
		want(20, 1)
		time.Sleep(time.Minute)
		for i, a := range all {
			if a.over() != (i < 20) {
				t.Fatalf("number %d has what it wants: %t, want the first twenty to", i, a.over())
			}
		}
		if n := len(claims(t, d.Driver, "s")); n != 21 {
			t.Errorf("%d claims at the store, want the twenty and one that waits", n)
		}
		for _, a := range all[:5] {
			release(t, a.lease)
		}
		time.Sleep(time.Minute)
		for i, a := range all {
			if a.over() != (i < 21) {
				t.Fatalf("number %d has what it wants after five came back: %t, want the one who wanted fifteen to", i, a.over())
			}
		}
		release(t, all[20].lease)
		time.Sleep(time.Minute)
		for i, a := range all {
			if a.over() != (i < 36) {
				t.Fatalf("number %d has what it wants after fifteen came back: %t, want the first fifteen of the last to", i, a.over())
			}
		}
		asked := d.count("acquire") + d.count("requeue")
		for i := range 5 { // where none is free, one comes for one, and nothing else is asked
			release(t, all[5+i].lease)
			time.Sleep(time.Second)
		}
		if n := d.count("acquire") + d.count("requeue") - asked; n > 6 {
			t.Errorf("%d requests for five permits that came back one by one, want one each and one that waits at most", n)
		}
		for _, a := range append(all[10:20], all[21:]...) {
			release(t, a.wait(t))
		}
	})
}

// What was asked for beside the standing claim is given back where nobody wants it any more, or the
// store has not answered.
func TestSemaphore_SideBySideNothingIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const permits = 100
		for n := range 12 {
			store := memlock.New()
			c := newClient(t, inTen(store), nil)
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(20+7*n)*time.Millisecond)
			for range permits {
				go func() {
					if l, err := c.Semaphore("s", permits).Acquire(ctx, 1); err == nil {
						_ = l.Release() // which a store that answers nothing does not confirm
					}
				}()
			}
			<-ctx.Done()
			cancel()
			if n%2 == 1 {
				resume := store.Stall()
				time.AfterFunc(3*time.Second, resume)
			}
			time.Sleep(10 * time.Second)
			if left := len(claims(t, store, "s")); left != 0 {
				t.Errorf("%d claims are left", left)
			}
			if _, lines, kept := interlock.Remains(c); lines+kept != 0 {
				t.Errorf("%d lines and %d claims are kept", lines, kept)
			}
		}
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
