package interlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

func TestRenewals_AboutThreeToATrustWithJitter(t *testing.T) {
	for _, grace := range []time.Duration{time.Second, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var at []time.Time
			d := &spy{Driver: memlock.New()}
			d.ahead(func(_ context.Context, op string, _ driver.Claim) error {
				if op == "renew" {
					at = append(at, time.Now())
				}
				return nil
			})
			c := newClient(t, d, &interlock.Options{TTL: 10 * time.Second, Grace: grace})
			l := hold(t, c, "m")
			last := time.Now()
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			third, different := (10*time.Second-grace)/3, map[time.Duration]bool{}
			for _, now := range at {
				gap := now.Sub(last)
				if gap > third || gap < third*9/10 {
					t.Errorf("%v between renewals, want between 9/10 of %v and all of it", gap, third)
				}
				last, different[gap] = now, true
			}
			if len(different) < len(at)/2 {
				t.Errorf("%d different gaps among %d: no jitter", len(different), len(at))
			}
			if err := l.Release(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestTrust_SessionEndedByTheStoreWhileHeld(t *testing.T) {
	on(t, func(t *testing.T, store *memlock.Driver, p memlock.Personality) {
		c := newClient(t, store, nil)
		l := hold(t, c, "m")
		at := time.Now()
		store.EndSessions()
		if d := told(t, l).Sub(at); d != 0 || !errors.Is(l.Err(), driver.ErrSessionLost) {
			t.Errorf("told after %v of %v, want ErrSessionLost at once", d, l.Err())
		}
		// The store would let anybody in now; of this client nobody gets in before the old lease's
		// grace is over.
		const grace = 1500 * time.Millisecond
		again := hold(t, c, "m")
		if d := time.Since(at); d != grace {
			t.Errorf("the next of this client was granted after %v, want the grace of %v", d, grace)
		}
		if err := l.Release(); !errors.Is(err, interlock.ErrLost) {
			t.Errorf("release of the old lease: %v", err)
		}
		live(t, again)
		time.Sleep(time.Minute)
		live(t, again)
		if err := again.Release(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestTrust_SessionEndedWhileIdleIsInvisible(t *testing.T) {
	on(t, func(t *testing.T, store *memlock.Driver, p memlock.Personality) {
		c := newClient(t, store, nil)
		hold(t, c, "m").Release()
		store.EndSessions() // and at once, before anybody here has heard of it:
		l := must[*interlock.Lease](t)(c.Mutex("m").TryLock(t.Context()))
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
		store.EndSessions()
		synctest.Wait()
		start := time.Now()
		if err := hold(t, c, "m").Release(); err != nil || !time.Now().Equal(start) {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
	})
}

func TestTrust_SessionEndedWhileWaitingIsInvisible(t *testing.T) {
	on(t, func(t *testing.T, store *memlock.Driver, p memlock.Personality) {
		theirs := store.Share()
		a, b := newClient(t, store, nil), newClient(t, theirs, nil)
		l := hold(t, a, "m")
		next := granted(t, b, "m")
		for range 3 {
			synctest.Wait()
			theirs.EndSessions()
			synctest.Wait()
			if n := len(standing(t, store, "m")); n != 2 {
				t.Fatalf("%d claims after the waiter's session ended, want it to stand again", n)
			}
			time.Sleep(20 * time.Second)
		}
		live(t, l)
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
		if at := <-next; at.IsZero() {
			t.Error("the waiter noticed")
		}
	})
}

func TestTrust_FlappingStoreIsInvisibleToWaiters(t *testing.T) {
	on(t, func(t *testing.T, store *memlock.Driver, p memlock.Personality) {
		theirs := store.Share()
		a, b := newClient(t, store, nil), newClient(t, theirs, nil)
		l := hold(t, a, "m")
		next := granted(t, b, "m")
		for i := range 20 {
			synctest.Wait()
			switch i % 3 {
			case 0:
				theirs.Fail(errors.New("connection reset"))
			case 1:
				resume := theirs.Stall()
				time.AfterFunc(time.Duration(i)*300*time.Millisecond, resume)
			case 2:
				theirs.EndSessions()
			}
			time.Sleep(time.Duration(i) * 300 * time.Millisecond)
			theirs.Fail(nil)
			time.Sleep(2 * time.Second)
		}
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
		if at := <-next; at.IsZero() {
			t.Error("the waiter noticed")
		}
	})
}

func TestIdle_SessionClosesAndTheNextLockIsInvisibleAboutIt(t *testing.T) {
	for _, idle := range []time.Duration{0, time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			want := idle
			if idle == 0 {
				want = time.Minute
			}
			d := &spy{Driver: memlock.New()}
			c := newClient(t, d, &interlock.Options{Idle: idle})
			for range 3 {
				before := d.count("close")
				l := hold(t, c, "m")
				time.Sleep(20 * time.Second)
				l.Release()
				time.Sleep(want - 1)
				synctest.Wait()
				if d.count("close") != before {
					t.Errorf("closed before %v", want)
				}
				time.Sleep(1 + 5*time.Second) // it is seen at the next heartbeat at the latest
				synctest.Wait()
				if d.count("close") != before+1 {
					t.Errorf("not closed after %v", want)
				}
			}
			if d.count("open") != 3 || d.count("close") != 3 {
				t.Errorf("%d sessions opened, %d closed", d.count("open"), d.count("close"))
			}
		})
	}
}
