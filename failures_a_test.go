package interlock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// A1: someone who is not the owner, or is not any more, unlocks.
func TestA01_OnlyTheOwnerReleases(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, a, b := two(t)
		m := a.Mutex("m", interlock.Reentrant())
		outer := lock(t.Context(), t, m)
		inner := lock(outer.Context(), t, m)
		release(t, inner, inner, inner) // its owner once, and then nobody
		if n := len(claims(t, store, "m")); n != 1 || outer.Err() != nil {
			t.Fatalf("releasing the inner lease again freed the outer: %d claims, %v", n, outer.Err())
		}
		// A claim that was passed on belongs to the next goroutine.
		next := background(func() (*interlock.Lease, error) { return a.Mutex("m").Lock(t.Context()) })
		synctest.Wait()
		release(t, outer)
		passed := next.wait(t)
		release(t, outer, inner)
		if n := len(claims(t, store, "m")); n != 1 || passed.Err() != nil {
			t.Fatalf("releasing the outer lease again freed the next: %d claims, %v", n, passed.Err())
		}
		// A lost lease belongs to nobody; the next holder is of another process.
		theirs := background(func() (*interlock.Lease, error) { return b.Mutex("m").Lock(t.Context()) })
		synctest.Wait()
		store.Lose("m")
		held := theirs.wait(t)
		matches(t, passed.Release(), interlock.ErrLost)
		time.Sleep(time.Minute)
		if held.Err() != nil {
			t.Errorf("the release of a lost lease freed the next: %v", held.Err())
		}
		release(t, held)
	})
}

// A2: an unconditional delete frees the next holder's lock.
func TestA02_ALateReleaseFreesNobodyElse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		cut := store.Share()
		a, b := newClient(t, cut, nil), newClient(t, store, nil)
		late := lock(t.Context(), t, a.Mutex("m"))
		resume := cut.Stall()
		held := lock(t.Context(), t, b.Mutex("m")) // when a's time is over
		resume()
		matches(t, late.Release(), interlock.ErrLost)
		time.Sleep(time.Minute)
		if line := claims(t, store, "m"); len(line) != 1 || line[0].Fence != held.Fence() || held.Err() != nil {
			t.Errorf("a's late release freed b: %+v, %v, want b to hold it", line, held.Err())
		}
		release(t, held)
	})
}

// A3: a cancelled Lock whose request had left keeps the lock until its time is over.
func TestA03_ACancelledLockLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		cut := store.Share()
		c := newClient(t, cut, nil)
		release(t, lock(t.Context(), t, c.Mutex("warm")))
		answer := cut.StallReplies()
		ctx, cancel := context.WithCancel(t.Context())
		cancelled := background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(ctx) })
		synctest.Wait()
		resume := cut.Stall()
		cancel()
		<-cancelled.done
		matches(t, cancelled.err, context.Canceled, interlock.ErrUnavailable)
		time.Sleep(5 * time.Second)
		if n := len(claims(t, store, "m")); n != 1 {
			t.Fatalf("%d claims: the request was to arrive, and nothing after it", n)
		}
		answer()
		resume()
		time.Sleep(time.Second)
		if line := claims(t, store, "m"); len(line) != 0 {
			t.Errorf("a second after the wire healed the cancelled claim stands in line: %+v", line)
		}
		// The same for one who waits in line.
		l := lock(t.Context(), t, newClient(t, store, nil).Mutex("m"))
		waiting, stop := context.WithCancel(t.Context())
		a := background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(waiting) })
		synctest.Wait()
		stop()
		<-a.done
		time.Sleep(time.Second)
		if line := claims(t, store, "m"); len(line) != 1 {
			t.Errorf("a second after the wait was cancelled: %+v", line)
		}
		release(t, l)
	})
}

// A4: the release travels on the request's context, which is over.
func TestA04_ReleaseIsSentAlthoughTheContextIsOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		for i := range 1000 {
			ctx, cancel := context.WithCancel(t.Context())
			l := lock(ctx, t, c.Mutex("m"))
			cancel()
			if err := l.Release(); err != nil {
				t.Fatalf("release %d, after the end of its Lock's context: %v, want it sent", i, err)
			}
			if n := len(claims(t, store, "m")); n != 0 {
				t.Fatalf("release %d left %d claims", i, n)
			}
		}
	})
}

// A5: success is reported although the lease is over already, because the reply was under way for longer than it.
func TestA05_AnAnswerThatComesTooLateIsNoLease(t *testing.T) {
	for _, late := range []time.Duration{13 * time.Second, 14 * time.Second, 15 * time.Second, 40 * time.Second} {
		bubble(t, func(t *testing.T) {
			store := memlock.New()
			c := newClient(t, store, &interlock.Options{Patience: time.Hour})
			if err := c.Health(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(late, store.StallReplies())
			l := lock(t.Context(), t, c.Mutex("m"))
			if err := l.Err(); err != nil {
				t.Errorf("a reply %v late: got a lease that is over: %v", late, err)
			}
			if left := time.Until(l.Until()); left < 1500*time.Millisecond {
				t.Errorf("a reply %v late: a lease with %v of trust left, want its grace of 1.5s at least", late, left)
			}
			if n := len(claims(t, store, "m")); n != 1 {
				t.Errorf("%d claims", n)
			}
			release(t, l)
		})
	}
}

// A6: the release of one attempt deletes the next, which has the same value.
func TestA06_EveryAttemptHasAnIDOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		granted := make(chan struct{})
		var acquires atomic.Int32
		d := &tap{Driver: store}
		d.after = func(op string, _ driver.Claim, err error) error {
			if op == "acquire" && acquires.Add(1) == 1 {
				return errors.New("connection reset") // after the store has done it
			}
			return err
		}
		first := ""
		d.before = func(op string, c driver.Claim) error {
			if op == "acquire" && first == "" {
				first = c.ID
			}
			if op == "release" && c.ID == first {
				<-granted // the first attempt's release is overtaken by the second attempt
			}
			return nil
		}
		c := newClient(t, d, &interlock.Options{TTL: 10 * time.Second})
		attempt := background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(t.Context()) })
		time.Sleep(time.Second)
		close(granted)
		l := attempt.wait(t)
		time.Sleep(time.Minute)
		if n := len(claims(t, store, "m")); n != 1 || l.Err() != nil {
			t.Errorf("a minute after the first attempt was released: %d claims, %v, want the second's", n, l.Err())
		}
		release(t, l)
		seen := map[string]bool{}
		for _, call := range d.made("acquire") {
			if seen[call.claim.ID] {
				t.Errorf("two attempts with the ID %s", call.claim.ID)
			}
			seen[call.claim.ID] = true
		}
	})
}
