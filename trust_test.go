package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// What a holder is promised, on stores of every kind.

func TestDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &spy{Driver: memlock.New()}
		var spec driver.Spec
		d.opened = func(s driver.Spec) { spec = s }
		a, b := newClient(t, d, nil), newClient(t, d.Share(), nil)
		l := hold(t, a, "m")
		if spec.TTL != 15*time.Second {
			t.Errorf("default TTL %v, want 15s", spec.TTL)
		}
		resume := d.Stall()
		start := time.Now()
		next := granted(t, b, "m")
		if d := told(t, l).Sub(start); d != 13500*time.Millisecond {
			t.Errorf("default grace of %v, want a tenth of 15s", 15*time.Second-d)
		}
		if d := (<-next).Sub(start); d != 15*time.Second {
			t.Errorf("next after %v, want the TTL", d)
		}
		resume()
		l.Release()
		start = time.Now()
		resume = d.Stall()
		if _, err := a.Mutex("m").Lock(t.Context()); !errors.Is(err, interlock.ErrUnavailable) || time.Since(start) != 15*time.Second {
			t.Errorf("%v after %v, want ErrUnavailable after the TTL", err, time.Since(start))
		}
		resume()
	})
}

// personalities are the kinds of stores that the promises must hold on.
var personalities = map[string]memlock.Personality{
	"reference": {},
	"clamped":   {Clamp: 4 * time.Second},
	"rounded":   {Round: 3 * time.Second},
	"no expiry": {NoExpiry: true},
	"no order":  {NoOrder: true},
	"no fence":  {NoFence: true},
	"lost":      {Notices: memlock.Lost},
	"doubled":   {Notices: memlock.Doubled},
	"early":     {Notices: memlock.Early},
}

// on runs a test in a bubble for each personality.
func on(t *testing.T, test func(t *testing.T, store *memlock.Driver, p memlock.Personality)) {
	for name, p := range personalities {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, memlock.NewPersonality(p), p) })
		})
	}
}

// kept is for how long a store of this personality keeps a claim that nobody renews.
func kept(ttl time.Duration, p memlock.Personality) time.Duration {
	if p.Clamp > 0 {
		ttl = min(ttl, p.Clamp)
	}
	if p.Round > 0 {
		ttl = ttl.Truncate(p.Round)
	}
	return ttl
}

func TestTrust_SilenceEndsItAGraceBeforeTheNextIsGranted(t *testing.T) {
	on(t, func(t *testing.T, store *memlock.Driver, p memlock.Personality) {
		cut := store.Share()
		o := &interlock.Options{TTL: 10 * time.Second, Grace: time.Second}
		a, b := newClient(t, cut, o), newClient(t, store, o)
		l, start := hold(t, a, "m"), time.Now()
		ttl := kept(10*time.Second, p)
		resume := cut.Stall()
		next := granted(t, b, "m")
		at := told(t, l)
		if d := at.Sub(start); d != ttl-time.Second {
			t.Errorf("told after %v, want %v", d, ttl-time.Second)
		}
		if p.NoExpiry {
			time.Sleep(time.Hour)
			select {
			case <-next:
				t.Error("a store without expiry let the next in")
			default:
			}
			cut.EndSessions() // it learns of the death in its own way
		}
		at = at.Add(time.Second)
		switch d := (<-next).Sub(at); {
		case d < 0:
			t.Errorf("the next was granted %v before the grace was over", -d)
		case d > 0 && p.Notices != memlock.Lost && !p.NoExpiry:
			t.Errorf("the next was granted %v after the grace was over", d)
		case d > 4*time.Second && p.Notices == memlock.Lost:
			t.Errorf("the next was granted %v after the grace was over, want at its next renewal", d)
		}
		resume()
		l.Release()
	})
}

func TestTrust_WaitersGetItInTurnOnEveryStore(t *testing.T) {
	on(t, func(t *testing.T, store *memlock.Driver, p memlock.Personality) {
		first := newClient(t, store, nil)
		l := hold(t, first, "m")
		var rest []<-chan time.Time
		for range 10 {
			rest = append(rest, granted(t, newClient(t, store.Share(), nil), "m"))
			synctest.Wait()
		}
		time.Sleep(time.Minute) // renewals go on with waiting claims
		live(t, l)
		if n := len(standing(t, store, "m")); n != 11 {
			t.Errorf("%d claims after a minute, want 11", n)
		}
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
		for i, r := range rest {
			if at := <-r; at.IsZero() {
				t.Errorf("waiter %d did not get it", i)
			}
		}
		if got := standing(t, store, "m"); len(got) != 0 {
			t.Errorf("left in line: %+v", got)
		}
	})
}

func TestTrust_ClaimEndedByTheStoreWhileHeld(t *testing.T) {
	on(t, func(t *testing.T, store *memlock.Driver, p memlock.Personality) {
		c := newClient(t, store, &interlock.Options{TTL: 10 * time.Second, Grace: time.Second})
		l, other := hold(t, c, "m"), hold(t, c, "other")
		start := time.Now()
		ctx := l.Context()
		store.Lose("m")
		if ctx.Err() == nil || !errors.Is(context.Cause(ctx), driver.ErrGone) {
			t.Errorf("cause %v when Lose has returned", context.Cause(ctx))
		}
		next := granted(t, newClient(t, store.Share(), nil), "m")
		if d := (<-next).Sub(start); d != time.Second && p.Notices != memlock.Lost {
			t.Errorf("the next was granted after %v, want the grace", d)
		}
		live(t, other) // of the same session
		l.Release()
		if err := other.Release(); err != nil {
			t.Fatal(err)
		}
	})
}

// The store comes and goes; who waits does not notice, as long as it is away for less than a
// session lives. A5: a grant whose reply comes when the lease is over, or nearly, is never
// reported.
func TestTrust_LateGrantIsNotReported(t *testing.T) {
	for _, late := range []time.Duration{7999 * time.Millisecond, 8 * time.Second, 8001 * time.Millisecond, 8500 * time.Millisecond, 9 * time.Second, 9500 * time.Millisecond, 10 * time.Second, 12 * time.Second, 25 * time.Second} {
		t.Run(fmt.Sprint(late), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memlock.New()
				c := newClient(t, store, &interlock.Options{TTL: 10 * time.Second, Grace: time.Second, Patience: time.Minute})
				hold(t, c, "warm").Release()
				resume := store.StallReplies()
				time.AfterFunc(late, resume)
				start := time.Now()
				l := hold(t, c, "m")
				if left := time.Until(l.Until()); left < time.Second {
					t.Errorf("reported with %v of trust, want a grace of 1s at least", left)
				}
				live(t, l)
				if d := time.Since(start); d > late+20*time.Millisecond {
					t.Errorf("reported after %v", d)
				}
				synctest.Wait()
				if got := standing(t, store, "m"); len(got) != 1 || !got[0].Held {
					t.Fatalf("in line: %+v, want the lease's claim", got)
				} else if d := got[0].Until.Sub(l.Until()); d < time.Second {
					t.Errorf("trust ends %v before the store's, want the grace", d)
				}
				if err := l.Release(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// The same for a waiter whose notice, pushed by the store, comes late: it is renewed before it is
// reported.
func TestTrust_GrantPushedAfterAStopIsRenewedFirst(t *testing.T) {
	for _, late := range []time.Duration{time.Second, 8500 * time.Millisecond, 9500 * time.Millisecond, 10 * time.Second, time.Minute} {
		t.Run(fmt.Sprint(late), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &spy{Driver: memlock.New()}
				stopped := make(chan struct{})
				d.ahead(func(ctx context.Context, op string, _ driver.Claim) error {
					if op == "renew" {
						select {
						case <-stopped:
							return nil
						default:
						}
						select { // nothing of the process runs, and what was under way is lost
						case <-stopped:
							return errors.New("connection reset")
						case <-ctx.Done():
							return ctx.Err()
						}
					}
					return nil
				})
				d.behind(func(op string, _ driver.Claim, err error) error {
					if op == "wait" {
						<-stopped
					}
					return err
				})
				o := &interlock.Options{TTL: 10 * time.Second, Grace: time.Second, Patience: time.Hour}
				other := d.Share()
				a, b := newClient(t, other, o), newClient(t, d, o)
				l := hold(t, a, "m")
				got := make(chan *interlock.Lease, 1)
				go func() {
					l, err := b.Mutex("m").Lock(t.Context())
					if err != nil {
						t.Error(err)
					}
					got <- l
				}()
				synctest.Wait()
				l.Release()
				time.AfterFunc(late, func() { close(stopped) })
				mine := <-got
				if left := time.Until(mine.Until()); left < time.Second {
					t.Errorf("reported with %v of trust", left)
				}
				if n := d.count("renew"); late > 8*time.Second && n == 0 {
					t.Error("reported without a renewal")
				}
				if n := d.count("acquire"); late < 10*time.Second && n != 1 {
					t.Errorf("asked %d times, though the store had kept the claim", n)
				}
				if n := standing(t, other, "m"); len(n) != 1 || !n[0].Held {
					t.Errorf("in line: %+v", n)
				}
				live(t, mine)
				if err := mine.Release(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// The model of the whole: a thousand stalls at random phases, of either kind. Nobody is ever
// granted what another does not yet know to be lost.
func TestTrust_ThousandStalls(t *testing.T) {
	late := 0
	for seed := range uint64(1000) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 99))
			store := memlock.New()
			cut := store.Share()
			o := &interlock.Options{TTL: 3 * time.Second, Patience: time.Minute}
			a, b := newClient(t, cut, o), newClient(t, store, o)
			l := hold(t, a, "m")
			time.Sleep(time.Duration(rng.Int64N(int64(4 * time.Second))))
			var at time.Time
			context.AfterFunc(l.Context(), func() { at = time.Now() })
			stall := []func() (resume func()){cut.Stall, cut.StallReplies}
			first := stall[rng.IntN(2)]()
			next := granted(t, b, "m")
			// Replies that were held come late, and move nothing that they must not.
			time.Sleep(time.Duration(rng.Int64N(int64(2 * time.Second))))
			second := cut.Stall()
			first()
			then := <-next
			synctest.Wait()
			if at.IsZero() || then.Before(at) {
				late++
			}
			second()
			l.Release()
		})
	}
	if late > 0 {
		t.Errorf("%d of 1,000 were told after the next was granted", late)
	}
}

// While a Multi waits for one name it can lose another: it is not reported with that.
func TestTrust_MultiBeginsAgainWhenItLosesOneWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		cut := store.Share()
		a, b := newClient(t, cut, &interlock.Options{Patience: time.Hour}), newClient(t, store, nil)
		second := hold(t, b, "b")
		got := make(chan *interlock.Lease, 1)
		go func() {
			l, err := a.Multi([]string{"a", "b"}).Lock(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
		synctest.Wait()
		resume := cut.Stall()
		first := hold(t, b, "a") // when the time of the first is over
		resume()
		time.Sleep(time.Second)
		second.Release()
		time.Sleep(time.Second)
		select {
		case <-got:
			t.Fatal("reported, though another has one of the names")
		default:
		}
		first.Release()
		l := <-got
		live(t, l)
		if l.FenceOf("a") <= first.Fence() || l.FenceOf("b") <= second.Fence() {
			t.Errorf("tokens %d after %d, %d after %d", l.FenceOf("a"), first.Fence(), l.FenceOf("b"), second.Fence())
		}
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	})
}

// A renewal that began while an Acquire was under way may not have reached the claim: its trust is
// that of the Acquire.
func TestARenewalUnderWayCoversNoNewClaim(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := &spy{Driver: memlock.New()}
		d.behind(func(op string, c driver.Claim, err error) error {
			if op == "acquire" && c.Name == "slow" {
				time.Sleep(6 * time.Second) // the store has it; the answer takes its time
			}
			return err
		})
		c := newClient(t, d, nil)
		defer release(t, hold(t, c, "other")) // so that the session is renewed meanwhile
		time.Sleep(time.Second)
		started := time.Now()
		l := hold(t, c, "slow")
		defer release(t, l)
		if d.count("renew") == 0 {
			t.Fatal("nothing was renewed while the answer was on its way")
		}
		if got, want := l.Until().Sub(started), 13500*time.Millisecond; got > want {
			t.Errorf("trusted for %v from the start of its Acquire, want %v", got, want)
		}
		time.Sleep(6 * time.Second)
		if got, least := l.Until().Sub(started), 15*time.Second; got < least {
			t.Errorf("trusted for %v from the start of its Acquire although it was renewed since, want more than %v", got, least)
		}
	})
}

// Two renewals are under way; the answer of the first comes after that of the second, and is good
// for less. What counts from the start of the second is what the second was given.
func TestRenew_ValidOfARenewalThatWasOvertaken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		first, renews := make(chan struct{}), new(atomic.Int64)
		c := newClient(t, changed{memlock.New(), func(s everySession) driver.Session { return overtaken{s, first, renews} }}, nil)
		l := hold(t, c, "m")
		slow := background(func() (*interlock.Lease, error) { return nil, c.Health(t.Context()) })
		synctest.Wait()
		time.Sleep(time.Second)
		if err := c.Health(t.Context()); err != nil {
			t.Error(err)
		}
		until := l.Until()
		close(first)
		<-slow.done
		if now := l.Until(); !now.Equal(until) {
			t.Errorf("the lease ended %v earlier after the answer to a renewal that was overtaken", until.Sub(now))
		}
		release(t, l)
	})
}

// overtaken is a session whose first renewal is answered when first is closed, and is good for a
// second less than what follows.
type overtaken struct {
	everySession
	first  chan struct{}
	renews *atomic.Int64
}

func (s overtaken) Renew(ctx context.Context) (driver.Renewal, error) {
	n := s.renews.Add(1)
	r, err := s.everySession.Renew(ctx)
	if n == 1 {
		<-s.first
		r.Valid -= time.Second
	}
	return r, err
}
