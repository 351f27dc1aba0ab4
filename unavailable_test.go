package interlock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
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

// A store that says why it cannot is not asked until patience ends: whoever wants the lock hears it at once, whether that
// takes a session, a line of its own, or stands behind others of its client.
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

// A store that has no room for another claim still lets go of one: who releases is told that it did, and who stands behind it in its client
// that there is no room.
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

// A call that gets no answer at all, on a connection that is dead for all one knows, is not the last one: another fits
// before the end of trust or patience, and is answered.
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

// A store that answers nothing costs the process nothing that stays.
func TestUnavailable_TenThousandLocksLeaveNothing(t *testing.T) {
	t.Run("10000", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { leaveNothing(t, 10_000, (*memlock.Driver).StallReplies) })
	})
	through(t, func(t *testing.T, silence func(*memlock.Driver) func()) { leaveNothing(t, 500, silence) })
}

// bubbled counts the goroutines of the bubble. runtime.NumGoroutine takes thousands that have ended for living ones while the
// garbage collector frees their stacks.
func bubbled(t *testing.T) int {
	t.Helper()
	stacks := make([]byte, 1<<20) // has room for more than a test can do with
	stacks = stacks[:runtime.Stack(stacks, true)]
	mine := regexp.MustCompile(`, synctest bubble \d+\]`).Find(stacks)
	if mine == nil {
		t.Fatalf("not in a bubble: %.100s", stacks)
	}
	return bytes.Count(stacks, mine)
}

func leaveNothing(t *testing.T, locks int, silence func(*memlock.Driver) func()) {
	t.Helper()
	d := &spy{Driver: memlock.New()}
	var releasing, most atomic.Int64
	d.ahead(func(_ context.Context, op string, _ driver.Claim) error {
		if op == "release" {
			most.Store(max(most.Load(), releasing.Add(1)))
		}
		return nil
	})
	d.behind(func(_ context.Context, op string, _ driver.Claim) {
		if op == "release" {
			releasing.Add(-1)
		}
	})
	c := newClient(t, d, &interlock.Options{Patience: 5 * time.Second})
	kept := hold(t, c, "kept") // keeps the session alive, so that no expiry cleans up for us
	resume := silence(d.Driver)
	before := bubbled(t)
	var wg sync.WaitGroup
	for i := range locks {
		wg.Add(1)
		go func() {
			defer wg.Done()
			start := time.Now()
			_, err := c.Mutex(fmt.Sprint("m", i)).Lock(t.Context())
			if !errors.Is(err, interlock.ErrUnavailable) || time.Since(start) != 5*time.Second {
				t.Errorf("%v after %v, want ErrUnavailable after 5s", err, time.Since(start))
			}
		}()
	}
	wg.Wait()
	synctest.Wait()
	if n := bubbled(t) - before; n > 100 {
		t.Errorf("%d goroutines stay", n)
	}
	if n := most.Load(); n > 16 {
		t.Errorf("%d clean-ups at a time, want 16 at most", n)
	}
	live(t, kept)
	resume()
	time.Sleep(17 * time.Second) // TTL + 2 s
	if lines := must[[]driver.Line](t)(d.Lines(t.Context(), "m")); len(lines) != 0 {
		t.Errorf("%d names still taken a TTL after the store is back", len(lines))
	}
	live(t, kept)
	if err := kept.Release(); err != nil {
		t.Error(err)
	}
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

// The same when the silence lasts for longer than a session, which the store keeps all the same: what it is asked
// arrives, and nobody hears of it.
func TestUnavailable_LongSilenceLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		theirs := store.Share()
		c := newClient(t, theirs, &interlock.Options{TTL: 2 * time.Second, Patience: 6 * time.Second})
		hold(t, c, "warm").Release()
		busy := hold(t, newClient(t, store, nil), "busy")
		ctx, stop := context.WithCancel(t.Context())
		var asking sync.WaitGroup
		asking.Go(func() { // so that the session is renewed all the time
			for ctx.Err() == nil {
				_, _ = c.Mutex("busy").Lock(ctx)
			}
		})
		resume := theirs.StallReplies()
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				if _, err := c.Mutex(fmt.Sprint("m", i)).Lock(t.Context()); !errors.Is(err, interlock.ErrUnavailable) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		time.Sleep(10 * time.Second)
		resume()
		l := hold(t, c, "kept") // keeps what is left of the session alive
		time.Sleep(4 * time.Second)
		if lines := must[[]driver.Line](t)(store.Lines(t.Context(), "m")); len(lines) != 0 {
			t.Errorf("%d names still taken a TTL after the store is back", len(lines))
		}
		stop()
		asking.Wait()
		busy.Release()
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	})
}

// A thousand who waited give up at once, while the store is silent or answers; a second after it answers none of them stands in line.
func TestUnavailable_AThousandCancelledClaimsAreGoneInASecond(t *testing.T) {
	for name, option := range map[string]interlock.LockOption{
		"isolated": interlock.Isolated(),
		"shared":   interlock.MinHold(0),
	} {
		for _, silent := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, silent %t", name, silent), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					store := memlock.New()
					wire := &spy{Driver: store.Share()}
					wire.ahead(func(ctx context.Context, _ string, _ driver.Claim) error {
						slow(ctx, 2*time.Millisecond)
						return ctx.Err()
					})
					a, b := newClient(t, store, nil), newClient(t, wire, nil)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					var held []*interlock.Lease
					var waiters sync.WaitGroup
					for i := range 1000 {
						key := "m"
						if name == "shared" { // who shares a claim shares its line, too
							key = fmt.Sprint("m", i)
						}
						if i == 0 || key != "m" {
							held = append(held, hold(t, a, key))
						}
						waiters.Go(func() {
							if _, err := b.Mutex(key, option).Lock(ctx); !errors.Is(err, context.Canceled) {
								t.Errorf("%v, want that it was cancelled", err)
							}
						})
					}
					stand := func() (claims int) {
						for _, l := range must[[]driver.Line](t)(store.Lines(t.Context(), "m")) {
							claims += len(l.Claims)
						}
						return claims - len(held)
					}
					for stand() < 1000 {
						time.Sleep(time.Second)
					}
					resume := func() {}
					if silent {
						resume = wire.Stall()
					}
					cancel()
					waiters.Wait()
					if silent {
						time.Sleep(5 * time.Second)
					}
					resume()
					time.Sleep(time.Second)
					if n := stand(); n > 0 {
						t.Errorf("%d claims a second after the store answers", n)
					}
					release(t, held...)
				})
			})
		}
	}
}
