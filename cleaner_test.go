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

// What is given back in the background, and what it costs until the store answers.

// A store that answers nothing costs the process nothing that stays. The race detector would keep
// 1.8 GiB for ten thousand, so make proof has a part without it.
func TestUnavailable_TenThousandLocksLeaveNothing(t *testing.T) {
	many := 10_000
	if raceDetector {
		many = 1000
	}
	t.Run(fmt.Sprint(many), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { leaveNothing(t, many, (*memlock.Driver).StallReplies) })
	})
	through(t, func(t *testing.T, silence func(*memlock.Driver) func()) { leaveNothing(t, 500, silence) })
}

// bubbled counts the goroutines of the bubble. runtime.NumGoroutine takes thousands that have ended
// for living ones while the garbage collector frees their stacks.
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
	d.behind(func(op string, _ driver.Claim, err error) error {
		if op == "release" {
			releasing.Add(-1)
		}
		return err
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

// The same when the silence lasts for longer than a session, which the store keeps all the same:
// what it is asked arrives, and nobody hears of it.
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

// A thousand who waited give up at once, while the store is silent or answers, which is far away; a
// second after it answers none of them stands in line.
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
						slow(ctx, 50*time.Millisecond)
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

// Of a store that answers many are given back at a time; where it falls silent, few.
func TestUnavailable_FewClaimsAreGivenBackAtATimeOnceTheStoreIsSilent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		wire := &spy{Driver: store.Share()}
		var releasing, most atomic.Int64
		wire.ahead(func(ctx context.Context, op string, _ driver.Claim) error {
			if op == "release" {
				most.Store(max(most.Load(), releasing.Add(1)))
				slow(ctx, 50*time.Millisecond)
			}
			return nil
		})
		wire.behind(func(op string, _ driver.Claim, err error) error {
			if op == "release" {
				releasing.Add(-1)
			}
			return err
		})
		a, b := newClient(t, store, nil), newClient(t, wire, nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		held := hold(t, a, "m")
		var waiters sync.WaitGroup
		for range 2000 {
			waiters.Go(func() {
				if _, err := b.Mutex("m", interlock.Isolated()).Lock(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("%v, want that it was cancelled", err)
				}
			})
		}
		stand := func() int { return len(must[driver.Line](t)(store.Line(t.Context(), "m")).Claims) - 1 }
		for stand() < 2000 {
			time.Sleep(time.Second)
		}
		cancel()
		waiters.Wait()
		for stand() > 1000 {
			time.Sleep(10 * time.Millisecond)
		}
		if n := most.Load(); n < 100 || n > 256 {
			t.Errorf("%d at a time while the store answers, want 100 to 256", n)
		}
		resume := wire.StallReplies()
		time.Sleep(time.Second)
		most.Store(0)
		time.Sleep(3 * time.Second)
		if n := most.Load(); n > 16 {
			t.Errorf("%d at a time while the store is silent, want 16 at most", n)
		}
		resume()
		time.Sleep(time.Second)
		if n := stand(); n > 0 {
			t.Errorf("%d claims a second after the store answers", n)
		}
		release(t, held)
	})
}

// A13: the reply to an acquire is lost, and its repetition finds the lock taken: by itself.
func TestA13_ALostReplyBlocksNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		d := &spy{Driver: store}
		lose := true
		d.behind(func(op string, _ driver.Claim, err error) error {
			if op == "acquire" && lose {
				lose = false
				return errors.New("connection reset")
			}
			return err
		})
		c := newClient(t, d, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		l, err := c.Mutex("m").Lock(ctx)
		if err != nil {
			t.Fatalf("the reply was lost, and the lock is held by the attempt that nobody wants any more: %v", err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("took %v", took)
		}
		release(t, l)
		lose = true
		_, err = c.Mutex("m").TryLock(ctx)
		matches(t, err, interlock.ErrUnavailable)
		time.Sleep(time.Second)
		if n := len(claims(t, store, "m")); n != 0 {
			t.Errorf("%d claims a second after a try that was not answered", n)
		}
	})
}

// A3: a cancelled Lock whose request had left keeps the lock until its time is over.
func TestA03_ACancelledLockLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		cut := store.Share()
		c := newClient(t, cut, nil)
		release(t, lock(t.Context(), t, c.Mutex("warm")))
		answer := cut.StallReplies()
		ctx, cancel := context.WithCancel(t.Context())
		cancelled := background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(ctx) })
		synctest.Wait()
		resume := cut.Stall()
		cancel()
		<-cancelled.done
		matches(t, cancelled.err, context.Canceled, interlock.ErrUnavailable)
		time.Sleep(5 * time.Second)
		if n := len(claims(t, store, "m")); n != 1 {
			t.Fatalf("%d claims: the request was to arrive, and nothing after it", n)
		}
		answer()
		resume()
		time.Sleep(time.Second)
		if line := claims(t, store, "m"); len(line) != 0 {
			t.Errorf("a second after the wire healed the cancelled claim stands in line: %+v", line)
		}
		// The same for one who waits in line.
		l := lock(t.Context(), t, newClient(t, store, nil).Mutex("m"))
		waiting, stop := context.WithCancel(t.Context())
		a := background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(waiting) })
		synctest.Wait()
		stop()
		<-a.done
		time.Sleep(time.Second)
		if line := claims(t, store, "m"); len(line) != 1 {
			t.Errorf("a second after the wait was cancelled: %+v", line)
		}
		release(t, l)
	})
}
