package interlock_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) } // every lost lease is a line of the log

// These helpers make tests read as the sentences that they check.

// hold takes the mutex of this name, which must be free.
func hold(t *testing.T, c *interlock.Client, name string, o ...interlock.LockOption) *interlock.Lease {
	t.Helper()
	return must[*interlock.Lease](t)(c.Mutex(name, o...).Lock(t.Context()))
}

// granted locks the mutex of this name in the background, and yields when that was granted. The
// lease is released.
func granted(t *testing.T, c *interlock.Client, name string, o ...interlock.LockOption) <-chan time.Time {
	t.Helper()
	at := make(chan time.Time, 1)
	go func() {
		defer close(at)
		l, err := c.Mutex(name, o...).Lock(t.Context())
		if err != nil {
			t.Errorf("the next: %v", err)
			return
		}
		now := time.Now()
		if err := l.Release(); err != nil {
			t.Errorf("release of the next: %v", err)
		}
		at <- now
	}()
	return at
}

// told waits until a lease is over and returns when that was. A lease that goes on for two days
// will not end.
func told(t *testing.T, l *interlock.Lease) time.Time {
	t.Helper()
	select {
	case <-l.Context().Done():
	case <-time.After(48 * time.Hour):
		t.Fatal("the lease's context did not end within two days")
	}
	if cause := context.Cause(l.Context()); !errors.Is(cause, interlock.ErrLost) || !errors.Is(l.Err(), interlock.ErrLost) {
		t.Fatalf("cause %v, Err %v: want ErrLost", cause, l.Err())
	}
	return time.Now()
}

// live fails the test if the lease is over.
func live(t *testing.T, l *interlock.Lease) {
	t.Helper()
	if err := l.Err(); err != nil || l.Context().Err() != nil {
		t.Fatalf("lease is over: %v", err)
	}
}

// outlived fails the test if the lease is over after what a lease outlives.
func outlived(t *testing.T, l *interlock.Lease, what string) {
	t.Helper()
	if err := l.Err(); err != nil || l.Context().Err() != nil {
		t.Fatalf("%s ended the lease: %v", what, err)
	}
}

// standing returns what stands in the store's line of name, as seen by a driver whose wire is
// whole.
func standing(t *testing.T, store *memlock.Driver, name string) []driver.Holder {
	t.Helper()
	return must[driver.Line](t)(store.Line(t.Context(), name)).Claims
}

func TestWait_BoundsTheWaitingExactly(t *testing.T) {
	for _, d := range []time.Duration{time.Millisecond, 3 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			store := memlock.New()
			a, b := newClient(t, store, nil), newClient(t, store.Share(), nil)
			l := hold(t, a, "m")
			for _, c := range []*interlock.Client{a, b} { // here and at the store
				start := time.Now()
				_, err := c.Mutex("m", interlock.Wait(d)).Lock(t.Context())
				if !errors.Is(err, interlock.ErrHeld) || time.Since(start) != d {
					t.Errorf("%v after %v, want ErrHeld after %v", err, time.Since(start), d)
				}
			}
			if err := l.Release(); err != nil { // which Wait does not bound
				t.Error(err)
			}
		})
	}
}

func TestWait_BoundsTheWaitingForASilentStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		c := newClient(t, store, nil)
		resume := store.Stall()
		for range 2 {
			start := time.Now()
			_, err := c.Mutex("m", interlock.Wait(time.Second)).Lock(t.Context())
			if !errors.Is(err, interlock.ErrUnavailable) || errors.Is(err, interlock.ErrHeld) || time.Since(start) != time.Second {
				t.Errorf("%v after %v, want ErrUnavailable after 1s", err, time.Since(start))
			}
		}
		resume()
	})
}

func TestWait_BoundsAllNamesOfAMulti(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		a, b := newClient(t, store, nil), newClient(t, store.Share(), nil)
		first, second := hold(t, a, "a"), hold(t, a, "b")
		time.AfterFunc(3*time.Second, func() { first.Release() })
		start := time.Now()
		_, err := b.Multi([]string{"a", "b"}, interlock.Wait(5*time.Second)).Lock(t.Context())
		if !errors.Is(err, interlock.ErrHeld) || time.Since(start) != 5*time.Second {
			t.Errorf("%v after %v, want ErrHeld after 5s", err, time.Since(start))
		}
		second.Release()
	})
}

func TestMaxHold_EndsTheContextAGraceEarlierAndReleasesInTime(t *testing.T) {
	on(t, func(t *testing.T, store *memlock.Driver, p memlock.Personality) {
		a, b := newClient(t, store, nil), newClient(t, store.Share(), nil)
		l, start := hold(t, a, "m", interlock.MaxHold(20*time.Second), interlock.Grace(time.Second)), time.Now()
		next := granted(t, b, "m")
		if d := told(t, l).Sub(start); d != 19*time.Second || !errors.Is(context.Cause(l.Context()), interlock.ErrMaxHold) {
			t.Errorf("%v after %v, want ErrMaxHold after 19s", context.Cause(l.Context()), d)
		}
		if d := (<-next).Sub(start); d != 20*time.Second && p.Notices != memlock.Lost {
			t.Errorf("the next was granted after %v, want 20s", d)
		}
		if err := l.Release(); !errors.Is(err, interlock.ErrMaxHold) {
			t.Errorf("release: %v", err)
		}
	})
}

func TestMaxHold_EndsWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, memlock.New(), nil)
		m := c.Mutex("m", interlock.MaxHold(20*time.Second))
		for range 5 { // each lease has its own
			l := must[*interlock.Lease](t)(m.Lock(t.Context()))
			time.Sleep(18 * time.Second)
			live(t, l)
			if err := l.Release(); err != nil {
				t.Fatal(err)
			}
		}
		l := hold(t, c, "m") // and one without it has none
		time.Sleep(time.Hour)
		live(t, l)
		l.Release()
	})
}

func TestMaxHold_IsCountedForEachThatItIsPassedTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, memlock.New(), nil)
		m := c.Mutex("m", interlock.MaxHold(20*time.Second), interlock.Grace(time.Second))
		first := must[*interlock.Lease](t)(m.Lock(t.Context()))
		got := make(chan *interlock.Lease)
		go func() { got <- must[*interlock.Lease](t)(m.Lock(t.Context())) }()
		time.Sleep(5 * time.Millisecond)
		first.Release()
		second, start := <-got, time.Now()
		if second.Fence() != first.Fence()+1 {
			t.Fatalf("tokens %d, %d: not passed", first.Fence(), second.Fence())
		}
		if d := told(t, second).Sub(start); d != 19*time.Second {
			t.Errorf("told after %v, want 19s", d)
		}
		second.Release()
	})
}

func TestMinHold_KeepsTheNameThroughReleaseErrorsAndPanics(t *testing.T) {
	on(t, func(t *testing.T, store *memlock.Driver, p memlock.Personality) {
		a, b := newClient(t, store, nil), newClient(t, store.Share(), nil)
		m := a.Mutex("m", interlock.MinHold(30*time.Second))
		failed := errors.New("job failed")
		for name, job := range map[string]func(){
			"release": func() {
				l := must[*interlock.Lease](t)(m.Lock(t.Context()))
				time.Sleep(time.Second)
				start := time.Now()
				if err := l.Release(); err != nil || !time.Now().Equal(start) {
					t.Errorf("release: %v after %v, want nil at once", err, time.Since(start))
				}
				if !errors.Is(l.Err(), interlock.ErrReleased) {
					t.Errorf("after the release: %v", l.Err())
				}
			},
			"error": func() {
				if err := m.Do(t.Context(), func(context.Context) error { return failed }); !errors.Is(err, failed) {
					t.Errorf("do: %v", err)
				}
			},
			"panic": func() {
				defer func() { _ = recover() }()
				_ = m.Do(t.Context(), func(context.Context) error { panic(failed) })
			},
		} {
			start := time.Now()
			job()
			here := granted(t, a, "m") // it is not passed on
			synctest.Wait()
			there := granted(t, b, "m")
			at := []time.Time{<-here, <-there}
			for i, at := range at {
				if d := at.Sub(start); d < 30*time.Second || d > 40*time.Second {
					t.Errorf("%s: the next (%d) was granted after %v, want 30s", name, i, d)
				} else if d != 30*time.Second && p.Notices != memlock.Lost && !p.NoOrder {
					t.Errorf("%s: the next (%d) was granted after %v, want 30s", name, i, d)
				}
			}
		}
	})
}

func TestMinHold_AfterALossOnlyTheGraceIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		cut := store.Share()
		a, b := newClient(t, cut, nil), newClient(t, store, nil)
		l, start := hold(t, a, "m", interlock.MinHold(time.Minute)), time.Now()
		resume := cut.Stall()
		next := granted(t, b, "m")
		told(t, l)
		if d := (<-next).Sub(start); d != 15*time.Second {
			t.Errorf("next after %v", d) // the store knows nothing of a minimum
		}
		resume()
		l.Release()
	})
}

func TestRelease_WaitsTwoSecondsForAnAnswer(t *testing.T) {
	for _, kind := range []string{"stall", "replies"} {
		synctest.Test(t, func(t *testing.T) {
			store := memlock.New()
			c := newClient(t, store, nil)
			l := hold(t, c, "m")
			stall := store.Stall
			if kind == "replies" {
				stall = store.StallReplies
			}
			resume := stall()
			start := time.Now()
			err := l.Release()
			if !errors.Is(err, interlock.ErrUncertain) || time.Since(start) != 2*time.Second {
				t.Errorf("%s: %v after %v, want ErrUncertain after 2s", kind, err, time.Since(start))
			}
			if again := l.Release(); !errors.Is(again, err) {
				t.Errorf("%s: the second release: %v", kind, again)
			}
			time.Sleep(3 * time.Second)
			resume()
			time.Sleep(time.Second) // it goes on in the background
			if got := standing(t, store, "m"); len(got) != 0 {
				t.Errorf("%s: a second after the wire healed: %+v", kind, got)
			}
		})
	}
}

func TestRelease_WaitsNoLongerThanTrustLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		c := newClient(t, store, &interlock.Options{TTL: 2 * time.Second, Grace: 600 * time.Millisecond})
		l := hold(t, c, "m")
		resume := store.Stall()
		until := l.Until()
		time.Sleep(100 * time.Millisecond)
		if err := l.Release(); !errors.Is(err, interlock.ErrUncertain) || !time.Now().Equal(until) {
			t.Errorf("%v, %v after the end of trust: want ErrUncertain then", err, time.Since(until))
		}
		resume()
	})
}

func TestRelease_OfAFailingStoreIsUncertainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		c := newClient(t, store, nil)
		l := hold(t, c, "m")
		reset := errors.New("connection reset")
		store.Fail(reset)
		start := time.Now()
		if err := l.Release(); !errors.Is(err, interlock.ErrUncertain) || !errors.Is(err, reset) || !time.Now().Equal(start) {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		time.Sleep(5 * time.Second)
		store.Fail(nil)
		time.Sleep(time.Second)
		if got := standing(t, store, "m"); len(got) != 0 {
			t.Errorf("a second after the store is back: %+v", got)
		}
	})
}

// A lease whose Release was not answered is out of the line before anybody here gets in again.
func TestRelease_UncertainIsNeverHeldTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		c := newClient(t, store, nil)
		l := hold(t, c, "m")
		next := granted(t, c, "m", interlock.Note("another shape"))
		synctest.Wait()
		time.Sleep(20 * time.Millisecond)
		resume := store.StallReplies()
		if err := l.Release(); !errors.Is(err, interlock.ErrUncertain) {
			t.Error(err)
		}
		time.Sleep(time.Second)
		resume()
		if at := <-next; at.IsZero() {
			t.Error("the next did not get in")
		}
		time.Sleep(time.Second)
		if got := standing(t, store, "m"); len(got) != 0 {
			t.Errorf("left: %+v", got)
		}
	})
}
