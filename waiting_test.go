package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// A17: goroutines wait without number.
func TestA17_WaitersAreCappedAndLeaveNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const most, callers = 1000, 5000
		store := memlock.New()
		c := newClient(t, store, &interlock.Options{MaxWaiters: most})
		l := lock(t.Context(), t, c.Mutex("m"))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var waits []*attempt
		for range callers {
			waits = append(waits, background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(ctx) }))
		}
		synctest.Wait()
		refused := 0
		for _, w := range waits {
			if w.over() {
				refused++
				matches(t, w.err, interlock.ErrTooManyWaiters)
			}
		}
		if refused != callers-most {
			t.Errorf("%d of %d were refused, want %d", refused, callers, callers-most)
		}
		if n := len(claims(t, store, "m")); n != 1 {
			t.Errorf("%d claims, want the holder's, which is passed on", n)
		}
		cancel()
		for _, w := range waits {
			<-w.done
		}
		release(t, l)
		if n := len(claims(t, store, "m")); n != 0 {
			t.Errorf("%d claims are left", n)
		}
	})
}

// A18: a release wakes the whole herd, or somebody asks all the time.
func TestA18_AReleaseWakesOneAndAFailingStoreIsSpared(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const clients = 32
		store := memlock.New()
		l := lock(t.Context(), t, newClient(t, store, nil).Mutex("m"))
		var spies []*spy
		var waits []*attempt
		for range clients {
			d := &spy{Driver: store.Share()}
			c := newClient(t, d, nil)
			spies = append(spies, d)
			waits = append(waits, background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(t.Context()) }))
			synctest.Wait()
		}
		release(t, l)
		for _, w := range waits {
			release(t, w.wait(t))
		}
		synctest.Wait()
		for i, d := range spies {
			if a, w, r := d.count("acquire"), d.count("wait"), len(d.made("release", "requeue")); a != 1 || w != 1 || r != 1 {
				t.Errorf("client %d: %d acquires, %d waits, %d releases", i, a, w, r)
			}
		}
	})
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		c := newClient(t, store, &interlock.Options{Patience: time.Minute})
		release(t, lock(t.Context(), t, c.Mutex("m")))
		before := store.Calls()
		store.Fail(fmt.Errorf("connection refused: %w", driver.ErrNotSent))
		time.AfterFunc(10*time.Second, func() { store.Fail(nil) })
		release(t, lock(t.Context(), t, c.Mutex("m")))
		if n := store.Calls() - before; n > 50 {
			t.Errorf("%d calls in ten seconds of failure, want 50 at most", n)
		}
	})
}

// A19: a context that was over before still locks.
func TestA19_AContextThatIsOverLocksNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		l := must[*interlock.Lease](t)(c.RWMutex("r").RLock(t.Context())) // there to be joined
		calls := store.Calls()
		over, cancel := context.WithCancel(t.Context())
		cancel()
		for call, err := range everyCall(over, c, "m") {
			if _, observing := strings.CutSuffix(call, "er"); !strings.HasSuffix(call, ".Err") && !observing && call != "Election.Observe" {
				matches(t, err, context.Canceled)
				if errors.Is(err, interlock.ErrHeld) || errors.Is(err, interlock.ErrUnavailable) {
					t.Errorf("%s: %v, although nobody was asked", call, err)
				}
			}
		}
		if joined, err := c.RWMutex("r").RLock(over); !errors.Is(err, context.Canceled) {
			t.Errorf("joined readers: %v", err)
			release(t, joined)
		}
		if n := store.Calls() - calls; n != 0 {
			t.Errorf("%d calls", n)
		}
		release(t, l)
	})
}

// A22: a fair line keeps dead waiters, or drops living ones.
func TestA22_DeadWaitersLeaveAndLivingOnesKeepTheirPlaces(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const waiters = 9
		store := memlock.New()
		l := lock(t.Context(), t, newClient(t, store, nil).Mutex("m"))
		order := make(chan int, waiters)
		var left sync.WaitGroup
		for i := range waiters {
			d := store.Share()
			c := must[*interlock.Client](t)(interlock.New(d, nil))
			ctx, cancel := context.WithCancel(t.Context())
			w := background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(ctx) })
			synctest.Wait()
			dead := i%3 == 0
			if dead {
				resume := d.Stall()
				t.Cleanup(resume)
			}
			left.Go(func() {
				if <-w.done; w.err == nil {
					order <- i
					time.Sleep(time.Millisecond)
					release(t, w.lease)
				}
			})
			t.Cleanup(func() {
				cancel()
				left.Wait()
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		before := claims(t, store, "m")
		time.Sleep(20 * time.Second)
		after := claims(t, store, "m")
		if len(after) != 1+waiters-waiters/3 {
			t.Fatalf("%d claims, more than a TTL after every third waiter died", len(after))
		}
		time.Sleep(10 * time.Minute)
		for i, c := range claims(t, store, "m") {
			if c.PublicID != after[i].PublicID || !slices.ContainsFunc(before, func(b driver.Holder) bool { return b.PublicID == c.PublicID && b.Since.Equal(c.Since) }) {
				t.Errorf("place %d was lost in ten minutes of waiting", i)
			}
		}
		start := time.Now()
		release(t, l)
		for _, want := range []int{1, 2, 4, 5, 7, 8} {
			if got := <-order; got != want {
				t.Errorf("waiter %d, want %d", got, want)
			}
		}
		if took := time.Since(start); took > 10*time.Millisecond {
			t.Errorf("handed over in %v", took)
		}
	})
}
