package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

func through(t *testing.T, test func(t *testing.T, silence func(*memlock.Driver) (resume func()))) {
	for name, silence := range silences {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, silence) })
		})
	}
}

func TestPatience_OfALockWithoutDeadline(t *testing.T) {
	for _, warm := range []bool{false, true} {
		through(t, func(t *testing.T, silence func(*memlock.Driver) func()) {
			store := memlock.New()
			c := newClient(t, store, &interlock.Options{Patience: 7 * time.Second})
			if warm {
				hold(t, c, "m").Release()
			}
			time.Sleep(20 * time.Second) // the age of the last answer is no part of it
			resume := silence(store)
			start := time.Now()
			_, err := c.Mutex("m").Lock(t.Context())
			if !errors.Is(err, interlock.ErrUnavailable) || errors.Is(err, interlock.ErrHeld) || time.Since(start) != 7*time.Second {
				t.Errorf("warm %v: %v after %v, want ErrUnavailable after 7s", warm, err, time.Since(start))
			}
			resume()
			if err := hold(t, c, "m").Release(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPatience_OfAWaiterInLine(t *testing.T) {
	through(t, func(t *testing.T, silence func(*memlock.Driver) func()) {
		store := memlock.New()
		theirs := store.Share()
		a := newClient(t, store, nil)
		b := newClient(t, theirs, &interlock.Options{Patience: 7 * time.Second})
		l := hold(t, a, "m")
		failed := make(chan error, 1)
		go func() {
			_, err := b.Mutex("m").Lock(t.Context())
			failed <- err
		}()
		time.Sleep(time.Minute)
		resume := silence(theirs)
		start := time.Now()
		err := <-failed
		// Counted from the first request without an answer, which is the next renewal: a third of
		// the TTL from now at most.
		if d := time.Since(start); !errors.Is(err, interlock.ErrUnavailable) || d > 12*time.Second || d < 7*time.Second {
			t.Errorf("%v after %v, want ErrUnavailable 7s after the first request without an answer", err, d)
		}
		time.Sleep(time.Second)
		resume()
		time.Sleep(time.Second)
		if n := len(standing(t, store, "m")); n != 1 {
			t.Errorf("%d claims a second after the silence, want the holder's", n)
		}
		live(t, l)
		l.Release()
	})
}

func TestPatience_OfEachWaiter(t *testing.T) {
	through(t, func(t *testing.T, silence func(*memlock.Driver) func()) {
		store := memlock.New()
		c := newClient(t, store, &interlock.Options{Patience: 7 * time.Second})
		defer silence(store)()
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				time.Sleep(time.Duration(i) * 500 * time.Millisecond)
				start := time.Now()
				_, err := c.Mutex(fmt.Sprint("m", i%2)).Lock(t.Context())
				if d := time.Since(start); !errors.Is(err, interlock.ErrUnavailable) || d < 7*time.Second || d > 7*time.Second+2*time.Millisecond {
					t.Errorf("waiter %d: %v after %v, want ErrUnavailable after 7s", i, err, d)
				}
			}()
		}
		wg.Wait()
	})
}

func TestPatience_BehindAHolderOfThisClient(t *testing.T) {
	through(t, func(t *testing.T, silence func(*memlock.Driver) func()) {
		store := memlock.New()
		c := newClient(t, store, &interlock.Options{Patience: 7 * time.Second})
		l := hold(t, c, "m")
		resume := silence(store)
		start := time.Now()
		_, err := c.Mutex("m").Lock(t.Context())
		if d := time.Since(start); !errors.Is(err, interlock.ErrUnavailable) || d < 7*time.Second || d > 12*time.Second {
			t.Errorf("%v after %v, want ErrUnavailable", err, d)
		}
		resume()
		l.Release()
	})
}

func TestDeadline_OfALockAtASilentStoreMatchesBoth(t *testing.T) {
	through(t, func(t *testing.T, silence func(*memlock.Driver) func()) {
		store := memlock.New()
		c := newClient(t, store, nil)
		resume := silence(store)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		_, err := c.Mutex("m").Lock(ctx)
		if !errors.Is(err, interlock.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, interlock.ErrHeld) || time.Since(start) != 3*time.Second {
			t.Errorf("%v after %v, want ErrUnavailable and the deadline after 3s", err, time.Since(start))
		}
		resume()
	})
}

func TestDeadline_OfAWaiterInLineMatchesErrHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		a, b := newClient(t, store, nil), newClient(t, store.Share(), nil)
		l := hold(t, a, "m")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		_, err := b.Mutex("m").Lock(ctx)
		if !errors.Is(err, interlock.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, interlock.ErrUnavailable) || time.Since(start) != 3*time.Second {
			t.Errorf("%v after %v, want ErrHeld and the deadline after 3s", err, time.Since(start))
		}
		l.Release()
	})
}

// A session with nothing to renew is renewed without a question to the store, and so without an
// answer: whoever waits while the store refuses all else has waited in vain all the same.
func TestPatience_ARenewalOfNothingIsNoAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, over := &spy{Driver: memlock.New()}, make(chan struct{})
		defer close(over)
		store.ahead(func(_ context.Context, op string, _ driver.Claim) error {
			if op != "acquire" {
				return nil
			}
			select {
			case <-time.After(time.Second): // several renewals long
			case <-over:
			}
			return fmt.Errorf("a replica: %w", driver.ErrNotSent)
		})
		c := newClient(t, store, &interlock.Options{TTL: time.Second, Patience: 5 * time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := c.Mutex("m").Lock(ctx); !errors.Is(err, interlock.ErrUnavailable) || ctx.Err() != nil {
			t.Errorf("a store that refuses each acquire: %v, want ErrUnavailable when the patience is over", err)
		}
	})
}

// Whoever waits in line asks nothing between renewals. That is no silence of the store.
func TestPatience_OfAQuietWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		theirs := &spy{Driver: store.Share()}
		a := newClient(t, store, nil)
		b := newClient(t, theirs, &interlock.Options{Patience: 3 * time.Second})
		l := hold(t, a, "m")
		waits := background(func() (*interlock.Lease, error) { return b.Mutex("m").Lock(t.Context()) })
		synctest.Wait()
		failed := make(chan time.Time, 1)
		theirs.ahead(func(_ context.Context, op string, _ driver.Claim) error {
			if op != "renew" {
				return nil
			}
			select {
			case failed <- time.Now():
				return errors.New("the first error")
			default:
			}
			if first := <-failed; time.Since(first) < 2200*time.Millisecond {
				failed <- first
				return errors.New("another error")
			}
			return nil
		})
		for range 10 {
			time.Sleep(time.Second)
			if waits.over() {
				t.Fatalf("a quiet wait and two seconds of errors: %v, want it to wait on", waits.err)
			}
		}
		release(t, l)
		release(t, waits.wait(t))
	})
}

func TestPatience_OfAQuietWaitBesideOneThatGaveUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		theirs := &spy{Driver: store.Share()}
		a := newClient(t, store, nil)
		b := newClient(t, theirs, &interlock.Options{TTL: 5 * time.Minute, Patience: 30 * time.Second})
		l := hold(t, a, "m")
		waits := background(func() (*interlock.Lease, error) { return b.Mutex("m").Lock(t.Context()) })
		synctest.Wait()
		theirs.ahead(func(ctx context.Context, op string, c driver.Claim) error {
			switch {
			case op == "renew":
				return errors.New("one error")
			case c.Name == "given up":
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.Mutex("given up").Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		for theirs.count("renew") == 0 {
			time.Sleep(time.Second)
		}
		theirs.ahead(nil)
		time.Sleep(time.Second)
		if waits.over() {
			t.Fatalf("a request that was given up, a minute, and one error: %v, want it to wait on", waits.err)
		}
		release(t, l)
		release(t, waits.wait(t))
	})
}

// The second in line asks when the first has given up: its request has as much time as if it had
// just come.
func TestPatience_OfTheNextRequest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		theirs := &spy{Driver: store.Share()}
		a := newClient(t, store, nil)
		b := newClient(t, theirs, &interlock.Options{TTL: time.Minute, Patience: 2 * time.Second})
		l := hold(t, a, "m")
		first := background(func() (*interlock.Lease, error) {
			return b.Mutex("m", interlock.Note("first"), interlock.Wait(5*time.Second)).Lock(t.Context())
		})
		synctest.Wait()
		asked := make(chan time.Duration, 1)
		theirs.ahead(func(ctx context.Context, op string, _ driver.Claim) error {
			if deadline, ok := ctx.Deadline(); ok && op == "acquire" {
				asked <- time.Until(deadline)
			}
			return nil
		})
		second := background(func() (*interlock.Lease, error) { return b.Mutex("m").Lock(t.Context()) })
		if left := <-asked; left < time.Second {
			t.Errorf("the second waiter's request has %v, want half of its patience", left)
		}
		<-first.done
		matches(t, first.err, interlock.ErrHeld)
		release(t, l)
		release(t, second.wait(t))
	})
}
