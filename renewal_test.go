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

// The same for the opening of a session. No lease depends on that, for each is acquired later; what
// a renewal that fails says of the trust that is left does.
func TestL05_TrustCountsFromTheOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, r, start := &spy{Driver: memlock.New()}, &traces{}, time.Now()
		d.behind(func(op string, _ driver.Claim, err error) error {
			if op == "open" {
				time.Sleep(2 * time.Second)
			}
			return err
		})
		r.during = func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			if got := r.renewed[len(r.renewed)-1]; got.Err != nil && time.Since(start)+got.Trust != 9*time.Second {
				t.Errorf("open answered 2 s late: trust until %v after it was sent, want 9s, which is TTL - grace", time.Since(start)+got.Trust)
			}
		}
		c := newClient(t, d, &interlock.Options{TTL: 10 * time.Second, Grace: time.Second, Tracer: r})
		l := hold(t, c, "m")
		resume := d.Stall()
		defer resume()
		told(t, l)
		synctest.Wait()
		if len(r.renewed) == 0 {
			t.Error("no renewal has failed")
		}
	})
}

// The ways in which leases and their renewals have failed elsewhere, one test each.

// A renewer that outlives the release keeps a lock that nobody holds.
func TestL01_NothingIsRenewedAfterTheRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &spy{Driver: memlock.New()}
		c := newClient(t, d, nil)
		l := hold(t, c, "m")
		time.Sleep(time.Minute)
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
		before := d.count("renew")
		time.Sleep(59 * time.Second) // after a minute the session is closed
		if n := d.count("renew") - before; n != 0 {
			t.Errorf("%d renewals after the release, want none", n)
		}
		if got := standing(t, d.Driver, "m"); len(got) != 0 {
			t.Errorf("in line after the release: %+v", got)
		}
	})
}

// A renewer that stops at the first error loses a lock that the store would have kept.
func TestL02_RenewalsGoOnAfterErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		c := newClient(t, store, &interlock.Options{TTL: 3 * time.Second})
		l := hold(t, c, "m")
		for range 100 {
			store.Fail(errors.New("connection reset"))
			time.Sleep(time.Second)
			store.Fail(nil)
			time.Sleep(700 * time.Millisecond)
			outlived(t, l, "errors for a second")
		}
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
	})
}

// lateReply renews a lease with replies that take two seconds, then cuts the link, and returns by
// how much the holder was told before the next was granted.
func lateReply(t *testing.T, slow string) (margin time.Duration) {
	t.Helper()
	d := &spy{Driver: memlock.New()}
	var lag atomic.Bool
	lag.Store(true)
	d.behind(func(op string, _ driver.Claim, err error) error {
		if op == slow && lag.Load() {
			time.Sleep(2 * time.Second)
		}
		return err
	})
	a, b := newClient(t, d, &interlock.Options{TTL: 10 * time.Second}), newClient(t, d.Share(), nil)
	if slow == "renew" {
		must[*interlock.Lease](t)(a.Mutex("warm").Lock(t.Context())).Release()
	}
	l := hold(t, a, "m")
	for start := d.count("renew"); slow == "renew" && d.count("renew") == start; {
		time.Sleep(100 * time.Millisecond)
	}
	if slow == "renew" {
		time.Sleep(2 * time.Second)
	}
	resume := d.Stall()
	defer resume()
	next := granted(t, b, "m")
	at := told(t, l)
	margin = (<-next).Sub(at)
	lag.Store(false)
	time.Sleep(2 * time.Second)
	return margin
}

// The lease's clock is started when the reply arrives, and not when the request was sent.
func TestL05_TrustCountsFromTheSending(t *testing.T) {
	for _, slow := range []string{"renew", "acquire"} {
		synctest.Test(t, func(t *testing.T) {
			if d := lateReply(t, slow); d != time.Second {
				t.Errorf("%s answered 2 s late: %v from told to the next grant, want the grace of 1s", slow, d)
			}
		})
	}
}

// The call that renews may last longer than what it renews.
func TestL06_RenewalEndsWithTheTrustThatItExtends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &spy{Driver: memlock.New()}
		c := newClient(t, d, nil)
		var held atomic.Pointer[interlock.Lease]
		d.ahead(func(ctx context.Context, op string, _ driver.Claim) error {
			if l := held.Load(); op == "renew" && l.Err() == nil {
				if deadline, ok := ctx.Deadline(); !ok || deadline.After(l.Until()) {
					t.Errorf("a renewal may last until %v, the lease only until %v", deadline, l.Until())
				}
			}
			return nil
		})
		l := hold(t, c, "m")
		held.Store(l)
		time.Sleep(time.Minute)
		resume := d.Stall()
		told(t, l)
		resume()
		l.Release()
	})
}

// One renewal that fails throws the lock away.
func TestL09_FailedRenewalLeavesTheLeaseToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		c := newClient(t, store, nil)
		l := hold(t, c, "m")
		store.Fail(errors.New("connection reset"))
		time.Sleep(13 * time.Second)
		outlived(t, l, "renewals that failed for 13 s of 13.5 s")
		store.Fail(nil)
		time.Sleep(time.Minute)
		live(t, l)
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
	})
}

// Many locks make a storm of renewals, or one slow call starves all.
func TestL11_TenThousandLeasesAreOneRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &spy{Driver: memlock.New()}
		c := newClient(t, d, nil)
		leases := make([]*interlock.Lease, 10_000)
		for i := range leases {
			leases[i] = hold(t, c, fmt.Sprint("m", i))
			if n := d.count("open"); n != 1 {
				t.Fatalf("%d sessions to renew for %d leases, want one for all", n, i+1)
			}
		}
		d.ahead(func(ctx context.Context, op string, _ driver.Claim) error {
			if op == "renew" {
				slow(ctx, 200*time.Millisecond)
			}
			return nil
		})
		before := d.count("renew")
		time.Sleep(time.Minute)
		if n := d.count("renew") - before; n < 10 || n > 16 {
			t.Errorf("%d renewals of 10,000 leases in four TTLs, want about three to a TTL", n)
		}
		for _, l := range leases {
			live(t, l)
			if err := l.Release(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A renewer that comes late, for want of processor time, has no margin.
func TestO04_AThirdOfTheTrustIsMargin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &spy{Driver: memlock.New()}
		d.ahead(func(ctx context.Context, op string, _ driver.Claim) error {
			if op == "renew" {
				slow(ctx, 4400*time.Millisecond)
			}
			return nil
		})
		c := newClient(t, d, nil)
		l := hold(t, c, "m")
		time.Sleep(10 * time.Minute)
		outlived(t, l, "renewals that took 4.4 s of 13.5 s")
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
	})
}

// A call without a deadline hangs for minutes on a dead peer.
func TestO06_EveryCallHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &spy{Driver: memlock.New()}
		d.ahead(func(ctx context.Context, op string, _ driver.Claim) error {
			deadline, ok := ctx.Deadline()
			switch {
			case op == "wait":
			case !ok:
				t.Errorf("%s without a deadline, want one within the TTL", op)
			case time.Until(deadline) > 15*time.Second:
				t.Errorf("%s may last for %v, want at most the TTL", op, time.Until(deadline))
			}
			return nil
		})
		c, b := newClient(t, d, nil), newClient(t, d.Share(), nil)
		l := hold(t, b, "m")
		next := granted(t, c, "m")
		behind := granted(t, c, "m", interlock.Note("does not share"))
		time.Sleep(time.Minute)
		l.Release()
		<-next
		<-behind
		if _, err := c.Mutex("m").TryLock(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.Lose("m")
		time.Sleep(time.Minute)
		d.EndSessions()
		if err := c.Health(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Minute) // the idle session is closed
		for _, op := range []string{"open", "acquire", "wait", "renew", "release", "close"} {
			if d.count(op) == 0 {
				t.Errorf("no %s was seen", op)
			}
		}
	})
}
