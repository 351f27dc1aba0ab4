package memlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/memlock"
)

func client(t *testing.T, d *memlock.Driver) *interlock.Client {
	t.Helper()
	c, err := interlock.New(d, nil)
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

func lock(t *testing.T, m *interlock.Mutex) *interlock.Lease {
	t.Helper()
	l, err := m.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// next locks and releases m in the background and then tells when it was granted.
func next(t *testing.T, m *interlock.Mutex) <-chan time.Time {
	t.Helper()
	granted := make(chan time.Time, 1)
	go func() {
		l, err := m.Lock(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		at := time.Now()
		if err := l.Release(); err != nil {
			t.Error(err)
		}
		granted <- at // last: the test may end with it
	}()
	synctest.Wait()
	return granted
}

func matches(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("got %v, want an error that matches %q", err, target)
	}
}

func TestLose_ReturnsWhenTheContextsHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		a, b := client(t, store), client(t, store.Share())
		store.Lose("m") // nobody holds it
		l := lock(t, b.Mutex("m", interlock.Grace(time.Second)))
		granted, ctx := next(t, a.Mutex("m")), l.Context()
		lost := time.Now()
		store.Lose("m") // over whatever driver
		matches(t, context.Cause(ctx), interlock.ErrLost)
		if d := (<-granted).Sub(lost); d != time.Second {
			t.Errorf("the next got in after %v, want the grace", d)
		}
		matches(t, l.Release(), interlock.ErrLost)

		// Or when they have released, whichever is first; a waiter is not lost.
		l = lock(t, b.Mutex("m", interlock.Grace(time.Second)))
		granted, lost = next(t, a.Mutex("m")), time.Now()
		store.Lose("m")
		matches(t, l.Release(), interlock.ErrLost)
		if d := (<-granted).Sub(lost); d != 0 {
			t.Errorf("the next got in after %v, want at once", d)
		}

		var readers []*interlock.Lease
		for _, c := range []*interlock.Client{a, b, a} {
			l, err := c.RWMutex("r").RLock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			readers = append(readers, l)
		}
		other := lock(t, a.Mutex("other"))
		store.Lose("r")
		for _, l := range readers {
			matches(t, l.Err(), interlock.ErrLost)
			matches(t, l.Release(), interlock.ErrLost)
		}
		if err := other.Release(); err != nil {
			t.Errorf("another name: %v", err)
		}
	})
}

func TestForget_IsNotNoticedBeforeTheNextRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		a, b := client(t, store), client(t, store.Share())
		l := lock(t, a.Mutex("m"))
		forgotten := time.Now()
		store.Forget("m")
		if err := l.Err(); err != nil {
			t.Errorf("noticed at once: %v", err)
		}
		second, err := b.Mutex("m").TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if second.Fence() <= l.Fence() {
			t.Errorf("token %d after %d", second.Fence(), l.Fence())
		}
		<-l.Context().Done()
		if d := time.Since(forgotten); d > 5*time.Second {
			t.Errorf("noticed after %v, want at the next renewal", d)
		}
		if err := second.Release(); err != nil {
			t.Error(err)
		}
		matches(t, l.Release(), interlock.ErrLost)
	})
}

func TestEndSessions_OfOneDriverAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		dying := store.Share()
		a, b := client(t, dying), client(t, store)
		l, other := lock(t, a.Mutex("m")), lock(t, b.Mutex("n"))
		granted, died := next(t, b.Mutex("m")), time.Now()
		dying.EndSessions()
		if d := (<-granted).Sub(died); d != 0 {
			t.Errorf("the next got in after %v", d)
		}
		synctest.Wait()
		matches(t, l.Err(), interlock.ErrLost)
		matches(t, l.Release(), interlock.ErrLost)
		if err := other.Release(); err != nil {
			t.Error(err)
		}
		if err := lock(t, a.Mutex("m")).Release(); err != nil {
			t.Errorf("with a new session: %v", err)
		}
	})
}

func TestStall_CutsOneDriverOffAndTimeGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		cut := store.Share()
		a, b := client(t, cut), client(t, store)
		l := lock(t, a.Mutex("m"))
		start := time.Now()
		granted := next(t, b.Mutex("m"))
		resume := cut.Stall()
		<-l.Context().Done()
		if d := time.Since(start); d != 13500*time.Millisecond {
			t.Errorf("told after %v, want TTL - grace", d)
		}
		if d := (<-granted).Sub(start); d != 15*time.Second {
			t.Errorf("the next got in after %v, want the TTL", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := a.Mutex("n").Lock(ctx)
		matches(t, err, interlock.ErrUnavailable)
		again := cut.Stall()
		resume()
		resume() // harmless, and not the resume of another
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = a.Mutex("n").Lock(ctx)
		matches(t, err, interlock.ErrUnavailable)
		again()
		if err := lock(t, a.Mutex("n")).Release(); err != nil {
			t.Error(err)
		}
		matches(t, l.Release(), interlock.ErrLost)
	})
}

func TestStallReplies_TheStoreDoesWhatItIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		cut := store.Share()
		a := client(t, cut)
		if err := a.Health(t.Context()); err != nil {
			t.Fatal(err)
		}
		resume := cut.StallReplies()
		granted := next(t, a.Mutex("m"))
		line, err := store.Line(t.Context(), "m")
		if err != nil || len(line.Claims) != 1 || !line.Claims[0].Held || len(granted) != 0 {
			t.Errorf("%+v, %v; granted %d", line, err, len(granted))
		}
		resume()
		<-granted
	})
}

func TestFail_BeforeTheStoreUntilNil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		failing := store.Share()
		a, b := client(t, failing), client(t, store)
		broken := errors.New("connection refused")
		failing.Fail(broken)
		calls := failing.Calls()
		_, err := a.Mutex("m").TryLock(t.Context())
		matches(t, err, broken)
		matches(t, err, interlock.ErrUnavailable)
		if n := failing.Calls() - calls; n != 1 {
			t.Errorf("%d calls", n)
		}
		if err := lock(t, b.Mutex("m")).Release(); err != nil {
			t.Error(err)
		}
		failing.Fail(nil)
		if err := lock(t, a.Mutex("m")).Release(); err != nil {
			t.Error(err)
		}
	})
}

func TestURL_NamesAStore(t *testing.T) {
	ctx := t.Context()
	open := func(url string) *interlock.Client {
		t.Helper()
		c, err := interlock.Open(ctx, url, &interlock.Options{Grace: 2 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	a, b, c, d := open("mem:shop"), open("mem:shop"), open("mem:"), open("mem:")
	l := lock(t, a.Mutex("m"))
	_, err := b.Mutex("m").TryLock(ctx)
	matches(t, err, interlock.ErrHeld)
	for _, own := range []*interlock.Client{c, d} {
		if l, err := own.Mutex("m").TryLock(ctx); err != nil {
			t.Error(err)
		} else if err := l.Release(); err != nil {
			t.Error(err)
		}
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

// Every personality is seen to be worse in its way, in the tests below.

func TestPersonality_TimesThatTheStoreChanges(t *testing.T) {
	for name, c := range map[string]struct {
		personality memlock.Personality
		trusted     time.Duration
	}{
		"clamp": {memlock.Personality{Clamp: 5 * time.Second}, 4 * time.Second},
		"round": {memlock.Personality{Round: 4 * time.Second}, 11 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := lock(t, client(t, memlock.NewPersonality(c.personality)).Mutex("m", interlock.Grace(time.Second)))
				if d := time.Until(l.Until()); d != c.trusted {
					t.Errorf("trusted for %v, want %v", d, c.trusted)
				}
				time.Sleep(time.Minute)
				if err := l.Release(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestPersonality_NoFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lock(t, client(t, memlock.NewPersonality(memlock.Personality{NoFence: true})).Mutex("m"))
		if l.Fence() != 0 {
			t.Errorf("token %d", l.Fence())
		}
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	})
}

func TestPersonality_NoExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.NewPersonality(memlock.Personality{NoExpiry: true})
		dead := store.Share()
		l := lock(t, client(t, dead).Mutex("m"))
		resume := dead.Stall()
		time.Sleep(time.Hour)
		matches(t, l.Err(), interlock.ErrLost)
		_, err := client(t, store).Mutex("m").TryLock(t.Context())
		matches(t, err, interlock.ErrHeld)
		resume()
	})
}

func TestPersonality_NoOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.NewPersonality(memlock.Personality{NoOrder: true})
		l := lock(t, client(t, store).Mutex("m"))
		var order []string
		var all sync.WaitGroup
		for _, who := range []string{"first", "second"} {
			c := client(t, store.Share())
			all.Go(func() {
				l := lock(t, c.Mutex("m"))
				order = append(order, who)
				if err := l.Release(); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		if err := l.Release(); err != nil {
			t.Error(err)
		}
		if all.Wait(); order[0] != "second" {
			t.Errorf("in order: %v", order)
		}
	})
}

func TestPersonality_Notices(t *testing.T) {
	for name, c := range map[string]struct {
		notices memlock.Notices
		late    time.Duration
	}{
		"lost":    {memlock.Lost, 5 * time.Second}, // the next renewal finds the grant
		"doubled": {memlock.Doubled, 0},
		"early":   {memlock.Early, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memlock.NewPersonality(memlock.Personality{Notices: c.notices})
				l := lock(t, client(t, store).Mutex("m"))
				granted := next(t, client(t, store.Share()).Mutex("m"))
				time.Sleep(time.Minute)
				start := time.Now()
				if err := l.Release(); err != nil {
					t.Error(err)
				}
				if d := (<-granted).Sub(start); d > c.late || c.late > 0 && d == 0 {
					t.Errorf("granted after %v", d)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}
