package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// A renewal fails, and the work goes on.
func TestL03_WorkEndsWhenTheLeaseCannotBeRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		c := newClient(t, store, nil)
		reset := errors.New("connection reset")
		start := time.Now()
		err := c.Mutex("m").Do(t.Context(), func(ctx context.Context) error {
			store.Fail(reset)
			defer store.Fail(nil)
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
				t.Error("the work's context lasted for a minute, with a lease of 15 s")
			}
			if d := time.Since(start); d != 13500*time.Millisecond {
				t.Errorf("the work's context ended after %v, want the TTL of 15 s less its grace", d)
			}
			return context.Cause(ctx)
		})
		if !errors.Is(err, interlock.ErrLost) || !errors.Is(err, interlock.ErrUnavailable) || !errors.Is(err, reset) {
			t.Errorf("Do returned %v: want ErrLost with its reasons", err)
		}
	})
}

// The loss is told when a renewal fails, or at the next tick, and not when trust ends.
func TestL04_LossIsToldBeforeTheNextIsGranted(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 4))
			store := memlock.New()
			cut := store.Share()
			a, b := newClient(t, cut, &interlock.Options{TTL: 3 * time.Second}), newClient(t, store, nil)
			l := hold(t, a, "m")
			time.Sleep(time.Duration(rng.Int64N(int64(10 * time.Second))))
			resume := cut.Stall()
			defer resume()
			next := granted(t, b, "m")
			at := told(t, l)
			if d := (<-next).Sub(at); d != 300*time.Millisecond {
				t.Fatalf("seed %d: %v from told to the next grant, want the grace of 300ms", seed, d)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// A lock that was over is extended, although another has held it since.
func TestL07_WhatTheStoreGaveAwayIsNeverRevived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		a, b := newClient(t, store, nil), newClient(t, store.Share(), nil)
		l := hold(t, a, "m")
		ctx := l.Context()
		store.Forget("m")
		between := hold(t, b, "m")
		if err := between.Release(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second) // one renewal
		if ctx.Err() == nil || !errors.Is(l.Err(), interlock.ErrLost) {
			t.Fatalf("after a renewal that told of the loss: %v, want ErrLost", l.Err())
		}
		if got := standing(t, store, "m"); len(got) != 0 {
			t.Fatalf("revived: %+v", got)
		}
		if err := l.Release(); !errors.Is(err, interlock.ErrLost) {
			t.Fatalf("release: %v", err)
		}
		again := hold(t, a, "m")
		defer again.Release()
		if again.Fence() <= between.Fence() || between.Fence() <= l.Fence() {
			t.Fatalf("tokens %d, %d, %d", l.Fence(), between.Fence(), again.Fence())
		}
	})
	synctest.Test(t, func(t *testing.T) { // the same when the renewal comes after the lease's time
		store := memlock.New()
		cut := store.Share()
		a, b := newClient(t, cut, nil), newClient(t, store, nil)
		l := hold(t, a, "m")
		resume := cut.Stall()
		next := granted(t, b, "m")
		told(t, l)
		<-next
		resume()
		time.Sleep(time.Minute)
		if err := l.Err(); !errors.Is(err, interlock.ErrLost) {
			t.Fatalf("a minute after the loss: %v", err)
		}
		if got := standing(t, store, "m"); len(got) != 0 {
			t.Fatalf("revived: %+v", got)
		}
		l.Release()
	})
}

// The arithmetic of the end of trust is wrong.
func TestL08_TrustEndsAGraceBeforeWhatTheStorePromised(t *testing.T) {
	for _, tt := range []struct{ ttl, grace, clamp, round, want time.Duration }{
		{ttl: 20 * time.Millisecond, want: 18 * time.Millisecond},
		{ttl: 10 * time.Millisecond, want: 8 * time.Millisecond}, // a grace is at least 2 ms
		{ttl: time.Second, want: 900 * time.Millisecond},
		{want: 13500 * time.Millisecond}, // the defaults
		{ttl: 24 * time.Hour, want: 24 * time.Hour * 9 / 10},
		{ttl: 10 * time.Second, grace: 3 * time.Second, want: 7 * time.Second},
		{ttl: 10 * time.Second, grace: 2 * time.Millisecond, want: 9998 * time.Millisecond},
		{ttl: 10 * time.Second, clamp: 4 * time.Second, want: 3 * time.Second},
		{ttl: 3700 * time.Millisecond, grace: 500 * time.Millisecond, round: time.Second, want: 2500 * time.Millisecond},
	} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memlock.NewPersonality(memlock.Personality{Clamp: tt.clamp, Round: tt.round})
				cut := store.Share()
				a, b := newClient(t, cut, &interlock.Options{TTL: tt.ttl, Grace: tt.grace}), newClient(t, store, &interlock.Options{TTL: tt.ttl})
				resume := cut.Stall
				l := hold(t, a, "m")
				start := time.Now()
				defer resume()()
				if d := l.Until().Sub(start); d != tt.want {
					t.Errorf("Until says %v, want %v", d, tt.want)
				}
				next := granted(t, b, "m")
				at := told(t, l)
				if d := at.Sub(start); d != tt.want {
					t.Errorf("told after %v, want %v", d, tt.want)
				}
				if d := (<-next).Sub(at); d <= 0 {
					t.Errorf("the next was granted %v after the end of trust", d)
				}
			})
		})
	}
}

// A renewer that gets no processor, or hangs in a driver that knows no deadlines, tells nobody.
func TestL12_TrustEndsThoughTheRenewerHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &spy{Driver: memlock.New()}
		a, b := newClient(t, d, nil), newClient(t, d.Share(), nil)
		l := hold(t, a, "m")
		start := time.Now()
		var hang atomic.Bool
		hang.Store(true)
		d.ahead(func(_ context.Context, op string, _ driver.Claim) error {
			if op == "renew" && hang.Load() {
				time.Sleep(10 * time.Minute) // whatever the context says
			}
			return nil
		})
		next := granted(t, b, "m")
		at := told(t, l)
		if d := at.Sub(start); d != 13500*time.Millisecond {
			t.Errorf("told after %v though the renewer hangs, want 13.5s", d)
		}
		if d := (<-next).Sub(at); d != 1500*time.Millisecond {
			t.Errorf("%v from told to the next grant, want the grace of 1.5s", d)
		}
		hang.Store(false)
		time.Sleep(10 * time.Minute)
		l.Release()
	})
}

// A job that hangs keeps its lock for ever.
func TestL13_MaxHoldEndsAHungJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		a, b := newClient(t, store, nil), newClient(t, store.Share(), nil)
		l := hold(t, a, "m", interlock.MaxHold(10*time.Minute), interlock.Grace(time.Second))
		start := time.Now()
		next := granted(t, b, "m")
		at := told(t, l)
		if d := at.Sub(start); d != 10*time.Minute-time.Second || !errors.Is(l.Err(), interlock.ErrMaxHold) {
			t.Errorf("told after %v of %v, want ErrMaxHold a grace before its end", d, l.Err())
		}
		if d := (<-next).Sub(start); d != 10*time.Minute {
			t.Errorf("the next was granted after %v, want 10m", d)
		}
		l.Release()
	})
}

// A renewal that has no file descriptor, no name service or an expired certificate fails in
// silence.
func TestO05_CauseSaysWhatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &spy{Driver: memlock.New()}
		c := newClient(t, d, nil)
		l := hold(t, c, "m")
		time.Sleep(time.Minute)
		if n := d.count("open"); n != 1 {
			t.Errorf("%d sessions opened by a lease that is renewed, want 1", n)
		}
		d.Fail(syscall.EMFILE)
		told(t, l)
		for _, err := range []error{context.Cause(l.Context()), l.Err(), l.Release()} {
			if !errors.Is(err, syscall.EMFILE) || !errors.Is(err, interlock.ErrUnavailable) {
				t.Errorf("%v: want what the store failed with", err)
			}
		}
		d.Fail(nil)
	})
}
