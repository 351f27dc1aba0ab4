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

// two returns two clients of one store, as two processes would have them.
func two(t *testing.T) (store *memlock.Driver, a, b *interlock.Client) {
	t.Helper()
	store = memlock.New()
	return store, newClient(t, store, &interlock.Options{Owner: "ann"}), newClient(t, store.Share(), &interlock.Options{Owner: "bob"})
}

func TestTryLock_NamesTheHolder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, a, b := two(t)
		l := lock(t.Context(), t, a.Mutex("m", interlock.Note("nightly")))
		for _, c := range []*interlock.Client{a, b} { // from the same process and from another
			start := time.Now()
			_, err := c.Mutex("m").TryLock(t.Context())
			matches(t, err, interlock.ErrHeld)
			var held *interlock.HeldError
			if !errors.As(err, &held) || held.Holder == nil {
				t.Fatalf("%v names nobody", err)
			}
			if h := held.Holder; h.Owner.Name != "ann" || h.Note != "nightly" || h.Fence != l.Fence() || !h.Since.Equal(start) {
				t.Errorf("holder %+v", h)
			}
			if want := `interlock: try "m": held by ann since ` + start.Format(time.RFC3339) + " (nightly)"; err.Error() != want {
				t.Errorf("%q, want %q", err, want)
			}
			if time.Since(start) != 0 {
				t.Errorf("a try took %v", time.Since(start))
			}
		}
		release(t, l)
		release(t, must[*interlock.Lease](t)(b.Mutex("m").TryLock(t.Context())))
	})
}

func TestTryLock_DoesNotOvertakeWaiters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, a, b := two(t)
		l := lock(t.Context(), t, a.RWMutex("m"))
		writer := background(func() (*interlock.Lease, error) { return b.RWMutex("m").Lock(t.Context()) })
		synctest.Wait()
		for _, c := range []*interlock.Client{a, b} {
			_, err := c.RWMutex("m").TryRLock(t.Context())
			matches(t, err, interlock.ErrHeld)
		}
		release(t, l)
		release(t, writer.wait(t))
	})
}

func TestTryLock_UnavailableAtOnceWhenTheStoreFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, a, _ := two(t)
		broken := errors.New("connection refused")
		store.Fail(broken)
		defer store.Fail(nil)
		start := time.Now()
		_, err := a.Mutex("m").TryLock(t.Context())
		matches(t, err, interlock.ErrUnavailable, broken)
		if errors.Is(err, interlock.ErrHeld) || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestWait_BoundsTheWaitingAndNothingElse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, a, b := two(t)
		l := lock(t.Context(), t, a.Mutex("m"))
		m := b.Mutex("m", interlock.Wait(3*time.Second))
		start := time.Now()
		_, err := m.Lock(t.Context())
		matches(t, err, interlock.ErrHeld)
		if errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		release(t, l)
		l = lock(t.Context(), t, m)
		time.Sleep(time.Minute)
		if err := l.Err(); err != nil {
			t.Errorf("a minute later: %v", err)
		}
		release(t, l)
	})
}

func TestWait_BoundsAlsoTheWaitForAStoreThatDoesNotAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, a, _ := two(t)
		defer store.Stall()()
		start := time.Now()
		_, err := a.Mutex("m", interlock.Wait(3*time.Second)).Lock(t.Context())
		matches(t, err, interlock.ErrUnavailable)
		if d := time.Since(start); d != 3*time.Second {
			t.Errorf("after %v, want 3s", d)
		}
	})
}

func TestWait_ZeroTriesOnceAndRunsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, a, b := two(t)
		l := lock(t.Context(), t, a.Mutex("m"))
		start := time.Now()
		err := b.Mutex("m", interlock.Wait(0)).Do(t.Context(), func(context.Context) error {
			t.Error("fn ran")
			return nil
		})
		matches(t, err, interlock.ErrHeld)
		if time.Since(start) != 0 {
			t.Errorf("took %v", time.Since(start))
		}
		release(t, l)
		ran := false
		if err := b.Mutex("m", interlock.Wait(0)).Do(t.Context(), func(context.Context) error { ran = true; return nil }); err != nil || !ran {
			t.Errorf("free: %v, ran: %v", err, ran)
		}
	})
}

func TestLock_AWaitThatEndsWhileHeldMatchesBothReasons(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, a, b := two(t)
		defer lock(t.Context(), t, a.Mutex("m")).Release()
		for _, c := range []*interlock.Client{a, b} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := c.Mutex("m").Lock(ctx)
			cancel()
			matches(t, err, interlock.ErrHeld, context.DeadlineExceeded)

			why := errors.New("user went away")
			caused, stop := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { stop(why) })
			_, err = c.Mutex("m").Lock(caused)
			matches(t, err, interlock.ErrHeld, context.Canceled, why)
			var held *interlock.HeldError
			if !errors.As(err, &held) || held.Holder.Owner.Name != "ann" {
				t.Errorf("%v does not name ann", err)
			}
		}
	})
}

func TestFence_IsThatOfTheInnermostLeaseOfTheName(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, c, other := two(t)
		if got := interlock.Fence(t.Context(), "a"); got != 0 {
			t.Errorf("outside: %d", got)
		}
		a := lock(t.Context(), t, c.Mutex("a"))
		release(t, lock(t.Context(), t, c.Mutex("b")))
		err := c.Mutex("b").Do(a.Context(), func(ctx context.Context) error {
			if fa, fb := interlock.Fence(ctx, "a"), interlock.Fence(ctx, "b"); fa != a.Fence() || fb == 0 || fb == fa {
				t.Errorf("fences %d of a and %d of b; a's is %d", fa, fb, a.Fence())
			}
			if f := interlock.Fence(ctx, "c"); f != 0 {
				t.Errorf("unknown name: %d", f)
			}
			return other.RWMutex("r").RDo(ctx, func(ctx context.Context) error {
				if f := interlock.Fence(ctx, "r"); f != 0 {
					t.Errorf("reader: %d", f)
				}
				return nil
			})
		})
		if err != nil {
			t.Error(err)
		}
		release(t, a)
	})
}

func TestDo_JoinsBothContexts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, c, _ := two(t)
		type key struct{}
		why := errors.New("user went away")
		ctx, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
		time.AfterFunc(time.Second, func() { cancel(why) })
		start := time.Now()
		err := c.Mutex("m").Do(ctx, func(ctx context.Context) error {
			if ctx.Value(key{}) != "value" {
				t.Error("the value is gone")
			}
			<-ctx.Done()
			if time.Since(start) != time.Second || !errors.Is(context.Cause(ctx), why) {
				t.Errorf("ended after %v: %v", time.Since(start), context.Cause(ctx))
			}
			time.Sleep(time.Minute) // Do waits for fn, however long that takes, and the lock is kept
			if _, err := c.Mutex("m").TryLock(context.Background()); !errors.Is(err, interlock.ErrHeld) {
				t.Errorf("while fn runs: %v", err)
			}
			return ctx.Err()
		})
		if err != context.Canceled || time.Since(start) != time.Second+time.Minute { //nolint:errorlint // exactly what fn returned
			t.Errorf("%v after %v", err, time.Since(start))
		}
		deadline := time.Now().Add(time.Hour)
		ctx2, cancel2 := context.WithDeadline(t.Context(), deadline)
		defer cancel2()
		_ = c.Mutex("m").Do(ctx2, func(ctx context.Context) error {
			if d, ok := ctx.Deadline(); !ok || !d.Equal(deadline) {
				t.Errorf("deadline %v", d)
			}
			return nil
		})
	})
}

func TestDo_ReturnsWhatFnReturnedAndALossBesides(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		mine := errors.New("mine")
		if err := c.Mutex("m").Do(t.Context(), func(context.Context) error { return mine }); err != mine { //nolint:errorlint // exactly that
			t.Errorf("%v, want what fn returned", err)
		}
		err := c.Mutex("m").Do(t.Context(), func(ctx context.Context) error {
			store.Lose("m")
			<-ctx.Done()
			matches(t, context.Cause(ctx), interlock.ErrLost)
			return mine
		})
		matches(t, err, mine, interlock.ErrLost)
		// Lost at the store, and not known here before the release says so: too late for fn, not for the result.
		err = c.Mutex("m").Do(t.Context(), func(context.Context) error {
			store.Forget("m")
			return nil
		})
		matches(t, err, interlock.ErrLost)
	})
}

func TestDo_ReleasesAfterPanicAndGoexit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		func() {
			defer func() {
				if r := recover(); r != "boom" {
					t.Errorf("recovered %v", r)
				}
			}()
			_ = c.Mutex("m").Do(t.Context(), func(context.Context) error { panic("boom") })
		}()
		if n := len(claims(t, store, "m")); n != 0 {
			t.Errorf("%d claims after a panic", n)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = c.Mutex("m").Do(t.Context(), func(context.Context) error { runtime.Goexit(); return nil })
		}()
		<-done
		if n := len(claims(t, store, "m")); n != 0 {
			t.Errorf("%d claims after Goexit", n)
		}
	})
}

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
	log := &lines{}
	c := newClient(t, memlock.New(), &interlock.Options{Grace: 2 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(log, nil))})
	release(t, must[*interlock.Lease](t)(c.Mutex("kept").Lock(t.Context())))
	if _, err := c.Mutex("dropped").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, _, line, _ := runtime.Caller(0)
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(log.String(), "dropped") && time.Now().Before(deadline); runtime.GC() {
		runtime.Gosched()
	}
	runtime.GC()
	got := log.String()
	if n := strings.Count(got, "lease dropped without Release"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	if place := fmt.Sprintf("api_test.go:%d", line-3); !strings.Contains(got, place) || !strings.Contains(got, "name=dropped") {
		t.Errorf("%s does not say %s", got, place)
	}
	if _, err := c.Mutex("dropped").TryLock(t.Context()); !errors.Is(err, interlock.ErrHeld) {
		t.Errorf("after the drop: %v; its user may still be at work with the context", err)
	}
}

func TestLock_TooManyWaiters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newClient(t, memlock.New(), &interlock.Options{MaxWaiters: 3})
		l := lock(t.Context(), t, c.Mutex("m"))
		var waiting []*attempt
		for range 3 {
			waiting = append(waiting, background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(t.Context()) }))
			synctest.Wait()
		}
		_, err := c.Mutex("m").Lock(t.Context())
		matches(t, err, interlock.ErrTooManyWaiters)
		_, err = c.Mutex("m").TryLock(t.Context())
		matches(t, err, interlock.ErrHeld)
		release(t, lock(t.Context(), t, c.Mutex("another")), l)
		for _, w := range waiting {
			release(t, w.wait(t))
		}
	})
}

func TestHealth(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		c := must[*interlock.Client](t)(interlock.New(store, nil))
		for range 2 {
			if err := c.Health(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		broken := errors.New("connection refused")
		store.Fail(broken)
		matches(t, c.Health(t.Context()), interlock.ErrUnavailable, broken)
		store.Fail(nil)
		resume := store.Stall()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		matches(t, c.Health(ctx), interlock.ErrUnavailable, context.DeadlineExceeded)
		resume()
		store.EndSessions()
		synctest.Wait()
		if err := c.Health(t.Context()); err != nil {
			t.Errorf("after the session was ended: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		matches(t, c.Health(t.Context()), interlock.ErrClosed)
	})
}

func TestKey_IsTheDriversWord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newClient(t, keyed{memlock.New()}, nil)
		if got := c.Key("a b"); got != "shop:a%20b" {
			t.Errorf("%q", got)
		}
	})
}

type keyed struct{ *memlock.Driver }

func (keyed) Key(name string) string { return "shop:" + strings.ReplaceAll(name, " ", "%20") }

// Somebody who gave up while the store was asked for it does not make the store unavailable for others.
func TestTryLock_AfterAnotherGaveUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		if err := c.Health(t.Context()); err != nil {
			t.Fatal(err)
		}
		answer := store.StallReplies() // the store is slow
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(ctx) })
		synctest.Wait()
		waiting := background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(t.Context()) })
		synctest.Wait()
		cancel()
		<-gaveUp.done
		answer()
		_, err := c.Mutex("m").TryLock(t.Context())
		matches(t, err, interlock.ErrHeld)
		if errors.Is(err, interlock.ErrUnavailable) {
			t.Errorf("%v, though somebody else of this process is before it", err)
		}
		release(t, waiting.wait(t))
	})
}

func TestClient_KeepsNothingOfWhatIsOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, a, b := two(t)
		held := lock(t.Context(), t, b.Mutex("held"))
		use := func(name string) {
			for _, o := range [][]interlock.LockOption{{}, {interlock.Isolated()}, {interlock.TTL(time.Second)}, {interlock.Wait(10 * time.Millisecond)}} {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				leases := []func() (*interlock.Lease, error){
					func() (*interlock.Lease, error) { return a.Mutex(name, o...).Lock(ctx) },
					func() (*interlock.Lease, error) { return a.Mutex(name, o...).TryLock(ctx) },
					func() (*interlock.Lease, error) { return a.RWMutex(name, o...).RLock(ctx) },
					func() (*interlock.Lease, error) { return a.Multi([]string{name, "other"}, o...).Lock(ctx) },
				}
				for _, lock := range leases {
					if l, err := lock(); err == nil {
						_ = l.Release()
					}
				}
				cancel()
			}
		}
		use("free")
		use("held")
		store.Fail(errors.New("connection reset"))
		use("free")
		store.Fail(nil)
		resume := store.Stall()
		use("free")
		resume()
		time.Sleep(20 * time.Second) // a TTL
		synctest.Wait()
		if isolated, lines, claims := interlock.Remains(a); isolated+lines+claims != 0 {
			t.Errorf("%d isolated sessions, %d lines and %d claims remain", isolated, lines, claims)
		}
		release(t, held)
	})
}
