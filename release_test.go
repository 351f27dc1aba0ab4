package interlock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

func TestRelease_IsIdempotentAlsoFromManyGoroutines(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, a, b := two(t)
		l := lock(t.Context(), t, a.Mutex("m"))
		ctx := l.Context()
		next := background(func() (*interlock.Lease, error) { return b.Mutex("m").Lock(t.Context()) })
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { release(t, l) })
		}
		all.Wait()
		held := next.wait(t)
		release(t, l)
		if held.Err() != nil || len(claims(t, store, "m")) != 1 {
			t.Errorf("the next holder: %v, %d claims", held.Err(), len(claims(t, store, "m")))
		}
		matches(t, context.Cause(ctx), interlock.ErrReleased)
		matches(t, l.Err(), interlock.ErrReleased)
		if errors.Is(l.Err(), interlock.ErrLost) {
			t.Error("released is not lost")
		}
		release(t, held)
	})
}

func TestRelease_OfALostLeaseSaysSoEachTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		l := lock(t.Context(), t, c.Mutex("m"))
		store.Lose("m")
		for range 2 {
			matches(t, l.Release(), interlock.ErrLost)
		}
		matches(t, context.Cause(l.Context()), interlock.ErrLost)
		if err := l.Err(); !errors.Is(err, interlock.ErrLost) || errors.Is(err, interlock.ErrReleased) {
			t.Errorf("Err after the loss and the release: %v, want ErrLost", err)
		}
		l = lock(t.Context(), t, c.Mutex("m"))
		store.Forget("m") // the release is the first to hear of it
		matches(t, l.Release(), interlock.ErrLost, driver.ErrGone)
	})
}

func TestRelease_WaitsTwoSecondsAtMostAndGoesOnInTheBackground(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		l := lock(t.Context(), t, c.Mutex("m"))
		resume := store.Stall()
		start := time.Now()
		matches(t, l.Release(), interlock.ErrUncertain)
		if d := time.Since(start); d != 2*time.Second {
			t.Errorf("after %v", d)
		}
		resume()
		time.Sleep(time.Second)
		if n := len(claims(t, store, "m")); n != 0 {
			t.Errorf("%d claims a second after the store came back", n)
		}
		// Never beyond the end of trust.
		l = lock(t.Context(), t, c.Mutex("m", interlock.TTL(time.Second)))
		end := l.Until()
		resume = store.Stall()
		defer resume()
		matches(t, l.Release(), interlock.ErrUncertain)
		if !time.Now().Equal(end) {
			t.Errorf("%v from the end of trust", time.Since(end))
		}
	})
}

func TestRelease_TakesNoNoticeOfTheCallersContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		ctx, cancel := context.WithCancel(t.Context())
		l := lock(ctx, t, c.Mutex("m"))
		cancel()
		if err := l.Err(); err != nil || l.Context().Err() != nil {
			t.Errorf("the wait's context ended the hold: %v", err)
		}
		release(t, l)
		if n := len(claims(t, store, "m")); n != 0 {
			t.Errorf("%d claims", n)
		}
	})
}

// lines is a slog handler's output that can be read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Outside of a bubble, because the garbage collector is.
func TestLease_DroppedWithoutReleaseIsLoggedOnceWithItsPlace(t *testing.T) {
	for _, ttl := range []time.Duration{0, 2500 * time.Millisecond} { // 15 s by default; and one that is renewed more than once a second
		t.Run(fmt.Sprint(ttl), func(t *testing.T) { droppedIsLogged(t, ttl) })
	}
}

func droppedIsLogged(t *testing.T, ttl time.Duration) {
	t.Helper()
	log, d := &lines{}, &spy{Driver: memlock.New()}
	c := newClient(t, d, &interlock.Options{TTL: ttl, Grace: 2 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(log, nil))})
	release(t, must[*interlock.Lease](t)(c.Mutex("kept").Lock(t.Context())))
	if _, err := c.Mutex("dropped").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, _, line, _ := runtime.Caller(0)
	// Each renewal has the leases watched that are not yet, so the collection after the second one
	// finds it, or a later one on a busy machine.
	late := d.count("renew") + 4
	for deadline, after := time.Now().Add(30*time.Second), 0; after < 20 && !strings.Contains(log.String(), "dropped") && time.Now().Before(deadline); runtime.GC() {
		runtime.Gosched()
		if d.count("renew") >= late {
			after++
		}
	}
	runtime.GC()
	got := log.String()
	if n := strings.Count(got, "lease dropped without Release"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	if place := fmt.Sprintf("release_test.go:%d", line-3); !strings.Contains(got, place) || !strings.Contains(got, "name=dropped") {
		t.Errorf("%s does not say %s", got, place)
	}
	if _, err := c.Mutex("dropped").TryLock(t.Context()); !errors.Is(err, interlock.ErrHeld) {
		t.Errorf("after the drop: %v; its user may still be at work with the context", err)
	}
}

// A8: a lease that many goroutines use races.
func TestA08_ALeaseIsSafeForConcurrentUse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		tracer := &traces{}
		d := &spy{Driver: memlock.New()}
		c := newClient(t, d, &interlock.Options{Tracer: tracer})
		l := lock(t.Context(), t, c.Mutex("m"))
		ctx, fence := l.Context(), l.Fence()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if l.Fence() != fence || l.FenceOf("m") != fence || l.Context() != ctx {
					t.Error("changed")
				}
				_, _ = l.Err(), l.Until()
			})
			all.Go(func() {
				if err := l.Release(); err != nil {
					t.Errorf("one of fifty who release at once: %v, want nil", err)
				}
			})
		}
		all.Wait()
		if n := d.count("release"); n != 1 {
			t.Errorf("%d releases were sent", n)
		}
		if n := len(tracer.holds()); n != 1 {
			t.Errorf("the hold ended %d times", n)
		}
	})
}

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
