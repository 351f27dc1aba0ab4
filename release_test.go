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
	// Each renewal has the leases watched that are not yet, so the collection after the second one finds it, or a later one on a busy machine.
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
