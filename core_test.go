package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

func newClient(t *testing.T, d driver.Driver, o *interlock.Options) *interlock.Client {
	t.Helper()
	c, err := interlock.New(d, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestMutex_OneHolderAndTokensGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		store := memlock.New()
		a, b := newClient(t, store, nil), newClient(t, store.Share(), nil)
		first := must[*interlock.Lease](t)(a.Mutex("m").Lock(ctx))
		if _, err := b.Mutex("m").TryLock(ctx); !errors.Is(err, interlock.ErrHeld) {
			t.Fatalf("try while held: %v, want ErrHeld", err)
		}
		got := make(chan *interlock.Lease)
		go func() {
			l, err := b.Mutex("m").Lock(ctx)
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
		synctest.Wait()
		select {
		case <-got:
			t.Fatal("two holders")
		default:
		}
		if err := first.Release(); err != nil {
			t.Fatal(err)
		}
		second := <-got
		if second.Fence() <= first.Fence() {
			t.Fatalf("tokens %d, then %d", first.Fence(), second.Fence())
		}
		if err := context.Cause(first.Context()); !errors.Is(err, interlock.ErrReleased) {
			t.Fatalf("cause after release: %v", err)
		}
		if err := second.Release(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestMutex_GoroutinesOfOneClientTakeTurnsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		c := newClient(t, store, nil)
		first := must[*interlock.Lease](t)(c.Mutex("m").Lock(t.Context()))
		order := make(chan int, 100)
		last := make(chan uint64, 100)
		for i := range 100 {
			go func() {
				l, err := c.Mutex("m").Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				order <- i
				last <- l.Fence()
				if err := l.Release(); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		before := store.Calls()
		fence := first.Fence()
		if err := first.Release(); err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			if got := <-order; got != i {
				t.Fatalf("turn %d went to goroutine %d", i, got)
			}
			f := <-last
			if f <= fence {
				t.Fatalf("token %d after %d", f, fence)
			}
			fence = f
		}
		synctest.Wait()
		// 101 turns: with 32 to a claim, three times in line again, and out.
		if got := store.Calls() - before; got != 4 {
			t.Errorf("%d calls for 100 turns, want 4", got)
		}
	})
}

func TestLease_TrustEndsAGraceBeforeTheStoreLetsAnybodyIn(t *testing.T) {
	for _, grace := range []time.Duration{10 * time.Millisecond, time.Second, 10 * time.Second / 3} {
		t.Run(fmt.Sprint(grace), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memlock.New()
				cut := store.Share()
				a := newClient(t, cut, &interlock.Options{TTL: 10 * time.Second, Grace: grace})
				b := newClient(t, store, &interlock.Options{TTL: 10 * time.Second})
				l := must[*interlock.Lease](t)(a.Mutex("m").Lock(t.Context()))
				defer l.Release()
				resume := cut.Stall()
				defer resume()
				granted := make(chan time.Time, 1)
				go func() {
					next, err := b.Mutex("m").Lock(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					granted <- time.Now()
					next.Release()
				}()
				<-l.Context().Done()
				told := time.Now()
				if !errors.Is(context.Cause(l.Context()), interlock.ErrLost) {
					t.Fatalf("cause %v", context.Cause(l.Context()))
				}
				if d := (<-granted).Sub(told); d != grace {
					t.Fatalf("%v from told to the next grant, want %v", d, grace)
				}
			})
		})
	}
}

func TestLose_ReturnsAfterTheContextEndedAndTheNextWaitsForTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		a, b := newClient(t, store, nil), newClient(t, store.Share(), nil)
		l := must[*interlock.Lease](t)(a.Mutex("m", interlock.Grace(time.Second)).Lock(t.Context()))
		granted := make(chan time.Time, 1)
		go func() {
			next, err := b.Mutex("m").Lock(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			granted <- time.Now()
			next.Release()
		}()
		synctest.Wait()
		ctx := l.Context()
		at := time.Now()
		store.Lose("m")
		if ctx.Err() == nil || l.Err() == nil {
			t.Fatal("Lose returned before the context ended")
		}
		if d := (<-granted).Sub(at); d != time.Second {
			t.Fatalf("next granted after %v, want the grace of 1s", d)
		}
		if err := l.Release(); !errors.Is(err, interlock.ErrLost) {
			t.Fatalf("release of a lost lease: %v", err)
		}
	})
}

func TestRWMutex_ThousandReadersOfOneClientAreTwoClaimsAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		c := newClient(t, store, nil)
		leases := make(chan *interlock.Lease, 1000)
		for i := range 1000 {
			go func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				l, err := c.RWMutex("m").RLock(t.Context())
				if err != nil {
					t.Error(err)
				}
				leases <- l
			}()
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		line := must[driver.Line](t)(store.Line(t.Context(), "m"))
		if len(line.Claims) > 2 || len(leases) != 1000 {
			t.Fatalf("%d claims for %d readers", len(line.Claims), len(leases))
		}
		for range 1000 {
			if err := (<-leases).Release(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestLock_UnavailableAfterPatienceAndNothingStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		c := newClient(t, store, &interlock.Options{Patience: 3 * time.Second})
		resume := store.Stall()
		start := time.Now()
		_, err := c.Mutex("m").Lock(t.Context())
		if !errors.Is(err, interlock.ErrUnavailable) || time.Since(start) != 3*time.Second {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
		resume()
		l := must[*interlock.Lease](t)(c.Mutex("m").TryLock(t.Context()))
		l.Release()
	})
}

func TestLock_CancelledLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		c := newClient(t, store, nil)
		must[*interlock.Lease](t)(c.Mutex("warm").Lock(t.Context())).Release()
		resume := store.StallReplies()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Mutex("m").Lock(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, interlock.ErrUnavailable) {
			t.Fatal(err)
		}
		resume()
		time.Sleep(time.Second)
		if line := must[driver.Line](t)(store.Line(t.Context(), "m")); len(line.Claims) != 0 {
			t.Fatalf("a second after the wire healed: %+v", line.Claims)
		}
	})
}

func TestDo_LossMakesANilResultAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		c := newClient(t, store, nil)
		err := c.Mutex("m").Do(t.Context(), func(ctx context.Context) error {
			if interlock.Fence(ctx, "m") == 0 || interlock.Fence(ctx, "other") != 0 {
				t.Error("fence in context")
			}
			if _, err := c.Mutex("m").Lock(ctx); !errors.Is(err, interlock.ErrDeadlock) {
				t.Errorf("nested: %v", err)
			}
			store.Lose("m")
			return nil
		})
		if !errors.Is(err, interlock.ErrLost) {
			t.Fatal(err)
		}
	})
}

func TestSemaphoreAndMultiAndElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		c, d := newClient(t, store, nil), newClient(t, store.Share(), nil)
		one := must[*interlock.Lease](t)(c.Semaphore("s", 2).Acquire(t.Context(), 1))
		two := must[*interlock.Lease](t)(d.Semaphore("s", 2).Acquire(t.Context(), 1))
		if _, err := d.Semaphore("s", 2).TryAcquire(t.Context(), 1); !errors.Is(err, interlock.ErrHeld) {
			t.Fatal(err)
		}
		one.Release()
		must[*interlock.Lease](t)(d.Semaphore("s", 2).TryAcquire(t.Context(), 1)).Release()
		two.Release()
		if _, err := d.Mutex("s").TryLock(t.Context()); err != nil {
			t.Fatal(err)
		}
		m := must[*interlock.Lease](t)(c.Multi([]string{"b", "a", "b"}).Lock(t.Context()))
		if m.FenceOf("a") == 0 || m.FenceOf("b") == 0 || m.Fence() != 0 {
			t.Fatal("fences of multi")
		}
		if _, err := d.Mutex("a").TryLock(t.Context()); !errors.Is(err, interlock.ErrHeld) {
			t.Fatal(err)
		}
		if err := m.Release(); err != nil {
			t.Fatal(err)
		}
		err := c.Election("e").Lead(t.Context(), func(ctx context.Context) error {
			leader := must[interlock.Leader](t)(d.Election("e").Leader(ctx))
			if leader.Fence != interlock.Fence(ctx, "e") {
				t.Errorf("leader %+v", leader)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestClose_EndsLeasesAndReleasesAGraceLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		c := must[*interlock.Client](t)(interlock.New(store, nil))
		d := newClient(t, store.Share(), nil)
		l := must[*interlock.Lease](t)(c.Mutex("m", interlock.Grace(time.Second)).Lock(t.Context()))
		start := time.Now()
		granted := make(chan time.Duration)
		go func() {
			n := must[*interlock.Lease](t)(d.Mutex("m").Lock(t.Context()))
			granted <- time.Since(start)
			n.Release()
		}()
		go c.Close()
		<-l.Context().Done()
		if time.Since(start) != 0 {
			t.Fatal("context did not end at once")
		}
		if got := <-granted; got != time.Second {
			t.Fatalf("next after %v", got)
		}
		if _, err := c.Mutex("x").Lock(t.Context()); !errors.Is(err, interlock.ErrClosed) {
			t.Fatal(err)
		}
	})
}

func TestLock_AfterOneThatGaveUpIsNotPutOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := &spy{Driver: memlock.New()}
		c := newClient(t, store, nil)
		release(t, hold(t, c, "m"))
		var silent atomic.Bool
		silent.Store(true)
		store.ahead(func(ctx context.Context, op string, _ driver.Claim) error {
			if op == "acquire" && silent.Load() {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		first := background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(ctx) })
		synctest.Wait()
		next := background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(t.Context()) })
		synctest.Wait()
		start := time.Now()
		silent.Store(false)
		cancel()
		<-first.done
		if first.err == nil { // it got the lock in the moment in which it gave up
			release(t, first.lease)
		}
		l := next.wait(t)
		if d := time.Since(start); d != 0 {
			t.Errorf("the next one's lock took %v after one gave up, want no pause", d)
		}
		release(t, l)
	})
}

func TestWait_OfADriverThatNeverWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		var waits atomic.Int64
		a := newClient(t, store, nil)
		b := newClient(t, changed{store.Share(), func(s everySession) driver.Session { return hasty{s, &waits} }}, nil)
		l := hold(t, a, "m")
		next := background(func() (*interlock.Lease, error) { return b.Mutex("m").Lock(t.Context()) })
		time.Sleep(time.Minute)
		if n := waits.Load(); n > 60*100+100 {
			t.Errorf("asked %d times in a minute, want once in 10 ms", n)
		}
		release(t, l)
		release(t, next.wait(t))
	})
}

// hasty is a session whose Wait asks once and never waits.
type hasty struct {
	everySession
	waits *atomic.Int64
}

func (s hasty) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if s.waits.Add(1) > 10_000 {
		slow(ctx, time.Second) // that the test can end
	}
	return s.Acquire(ctx, c)
}
