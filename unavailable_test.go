package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// What those who want a lock are told when the store does not answer.

var errReset = errors.New("connection reset")

// silences are the ways in which a store can fail to answer.
var silences = map[string]func(*memlock.Driver) (resume func()){
	"stall":   (*memlock.Driver).Stall,
	"replies": (*memlock.Driver).StallReplies,
	"errors": func(d *memlock.Driver) func() {
		d.Fail(errReset)
		return func() { d.Fail(nil) }
	},
}

// A Wait that is over before the store has answered says nothing of who holds, but that there was
// no answer, and in what time.
func TestWait_WithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		c := newClient(t, store, nil)
		defer store.Stall()()
		_, err := c.Mutex("m", interlock.Wait(time.Second)).Lock(t.Context())
		matches(t, err, interlock.ErrUnavailable)
		if errors.Is(err, interlock.ErrHeld) || err.Error() != `interlock: lock "m": store unavailable: no answer in the wait of 1s` {
			t.Errorf("after a wait of 1s at a silent store: %v", err)
		}
	})
}

// A try at a store that fails is told so at once, alone and behind somebody who waits.
func TestTry_AtAFailingStoreAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		c := newClient(t, store, nil)
		store.Fail(errReset)
		waiting := make(chan error, 1)
		go func() {
			_, err := c.Mutex("m").Lock(t.Context())
			waiting <- err
		}()
		for range 3 { // alone, and behind somebody who waits for the store
			start := time.Now()
			for _, name := range []string{"m", "n"} {
				if _, err := c.Mutex(name).TryLock(t.Context()); !errors.Is(err, interlock.ErrUnavailable) || !errors.Is(err, errReset) || !time.Now().Equal(start) {
					t.Errorf("%v after %v, want ErrUnavailable at once", err, time.Since(start))
				}
			}
			time.Sleep(time.Second)
		}
		store.Fail(nil)
		if err := <-waiting; err != nil {
			t.Error(err)
		}
	})
}

// A store that says why it cannot is not asked until patience ends: whoever wants the lock hears it
// at once, whether that takes a session, a line of its own, or stands behind others of its client.
func TestUnable_IsToldAtOnce(t *testing.T) {
	for _, warm := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := memlock.New()
			c := newClient(t, store, nil)
			if warm {
				hold(t, c, "m").Release()
			}
			full := fmt.Errorf("%w: the disk is full", driver.ErrUnable)
			store.Fail(full)
			start := time.Now()
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					_, err := c.Mutex("m").Lock(t.Context())
					if !errors.Is(err, interlock.ErrUnavailable) || !errors.Is(err, full) || errors.Is(err, interlock.ErrHeld) {
						t.Errorf("warm %v: %v, want ErrUnavailable and the reason", warm, err)
					}
				})
			}
			all.Wait()
			if took := time.Since(start); took > 0 {
				t.Errorf("warm %v: told of a full disk after %v, want at once", warm, took)
			}
			store.Fail(nil)
			if err := hold(t, c, "m").Release(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A store that has no room for another claim still lets go of one: who releases is told that it
// did, and who stands behind it in its client that there is no room.
func TestUnable_ToRequeueStillReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &spy{Driver: memlock.New()}
		full := fmt.Errorf("%w: %w: the disk is full", driver.ErrUnable, driver.ErrNotSent)
		d.ahead(func(_ context.Context, op string, _ driver.Claim) error {
			if op == "requeue" {
				return full
			}
			return nil
		})
		c := newClient(t, d, nil)
		lease := hold(t, c, "m")
		behind := make(chan error, 1)
		go func() {
			_, err := c.Mutex("m").Lock(t.Context())
			behind <- err
		}()
		other := newClient(t, d, nil)
		var next *interlock.Lease
		var all sync.WaitGroup
		all.Go(func() { next = hold(t, other, "m") })
		time.Sleep(time.Second) // as long as nobody passes it on inside the process
		if err := lease.Release(); err != nil || d.count("requeue") != 1 {
			t.Errorf("release: %v, after %d requeues, want none and one", err, d.count("requeue"))
		}
		if err := <-behind; !errors.Is(err, interlock.ErrUnavailable) || !errors.Is(err, full) {
			t.Errorf("who stands behind: %v, want ErrUnavailable and the reason", err)
		}
		all.Wait()
		if next == nil || next.Err() != nil {
			t.Fatal("the next one of another client does not hold")
		}
		next.Release()
	})
}

// A call that gets no answer at all, on a connection that is dead for all one knows, is not the
// last one: another fits before the end of trust or patience, and is answered.
func TestSilence_OfOneCall(t *testing.T) {
	for _, silent := range []string{"renew", "acquire", "requeue", "open"} {
		t.Run(silent, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &spy{Driver: memlock.New()}
				var asked atomic.Int32
				d.ahead(func(ctx context.Context, op string, _ driver.Claim) error {
					if op != silent || asked.Add(1) > 1 {
						return nil
					}
					<-ctx.Done()
					return ctx.Err()
				})
				c := newClient(t, d, nil)
				l := hold(t, c, "m")
				next := make(chan error, 1)
				go func() {
					l, err := c.Mutex("m", interlock.TTL(15*time.Second)).Lock(t.Context())
					if err == nil {
						err = l.Release()
					}
					next <- err
				}()
				time.Sleep(time.Minute)
				outlived(t, l, "one "+silent+" without an answer")
				_ = l.Release()
				if err := <-next; err != nil {
					t.Errorf("the next one: %v", err)
				}
			})
		})
	}
}

// Who will not wait for others does not wait for a silent store either.
func TestTry_OnASilentStore(t *testing.T) {
	through(t, func(t *testing.T, silence func(*memlock.Driver) func()) {
		store := memlock.New()
		c := newClient(t, store, nil)
		hold(t, c, "warm").Release()
		resume := silence(store)
		start := time.Now()
		var all sync.WaitGroup
		for range 3 { // the first asks, the others are behind it
			all.Go(func() {
				if _, err := c.Mutex("m").TryLock(t.Context()); !errors.Is(err, interlock.ErrUnavailable) || errors.Is(err, interlock.ErrHeld) {
					t.Errorf("%v, want ErrUnavailable", err)
				}
			})
		}
		all.Go(func() {
			if _, err := c.Mutex("n", interlock.Wait(0)).Lock(t.Context()); !errors.Is(err, interlock.ErrUnavailable) {
				t.Errorf("%v, want ErrUnavailable", err)
			}
		})
		all.Wait()
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("a try took %v on a silent store, want 2s at most", took)
		}
		resume()
	})
}

func TestHealth_SaysWhetherTheStoreAnswers(t *testing.T) {
	through(t, func(t *testing.T, silence func(*memlock.Driver) func()) {
		store := memlock.New()
		c := newClient(t, store, &interlock.Options{Patience: 5 * time.Second})
		if err := c.Health(t.Context()); err != nil {
			t.Error(err)
		}
		resume := silence(store)
		start := time.Now()
		if err := c.Health(t.Context()); !errors.Is(err, interlock.ErrUnavailable) || time.Since(start) > 5*time.Second {
			t.Errorf("%v after %v, want ErrUnavailable within 5s", err, time.Since(start))
		}
		resume()
		store.EndSessions()
		if err := c.Health(t.Context()); err != nil {
			t.Errorf("after the store ended the session: %v", err)
		}
		c.Close()
		if err := c.Health(t.Context()); !errors.Is(err, interlock.ErrClosed) {
			t.Errorf("of a closed client: %v", err)
		}
	})
}

// A claim that was made for a waiter, and stood for a try when that had left, goes with the try.
func TestTry_BehindAWaiterThatLeftLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		theirs := store.Share()
		a, b := newClient(t, store, nil), newClient(t, theirs, nil)
		l := hold(t, a, "m")
		hold(t, b, "warm").Release()
		resume := theirs.StallReplies()
		waiter, try := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := b.Mutex("m", interlock.Wait(time.Second)).Lock(t.Context())
			waiter <- err
		}()
		synctest.Wait()
		go func() {
			_, err := b.Mutex("m").TryLock(t.Context())
			try <- err
		}()
		if err := <-waiter; !errors.Is(err, interlock.ErrUnavailable) {
			t.Errorf("the waiter: %v", err)
		}
		resume()
		if err := <-try; !errors.Is(err, interlock.ErrHeld) {
			t.Errorf("the try: %v", err)
		}
		time.Sleep(time.Second)
		if n := len(standing(t, store, "m")); n != 1 {
			t.Errorf("a second after the try was turned away: %d claims in line, want the holder's alone", n)
		}
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	})
}

// A Lock whose context ends at the moment of the grant does not wait for the release that follows.
func TestLock_CancelledAtTheGrantReturnsAtOnce(t *testing.T) {
	late := 0
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			store := memlock.New()
			c := newClient(t, store, nil)
			l := hold(t, c, "m")
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			defer cancel()
			resume := store.Stall()
			time.AfterFunc(5*time.Millisecond, func() { l.Release() }) // which passes it on
			start := time.Now()
			mine, err := c.Mutex("m").Lock(ctx)
			if time.Since(start) != 5*time.Millisecond {
				late++
			}
			resume()
			if err == nil {
				mine.Release()
			}
			time.Sleep(time.Second)
			if got := standing(t, store, "m"); len(got) != 0 {
				t.Errorf("left in line: %+v", got)
			}
		})
	}
	if late > 0 {
		t.Errorf("%d of 200 returned late", late)
	}
}
