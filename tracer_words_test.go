package interlock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// Each way to lose a lease is a word of its own, whatever else the error says.
func TestTracer_ReasonsOfLoss(t *testing.T) {
	type scene struct {
		store   *spy
		machine *sleeper
		client  *interlock.Client
		lease   *interlock.Lease
	}
	for want, loses := range map[interlock.Reason]func(t *testing.T, s scene){
		interlock.LostExpired: func(_ *testing.T, s scene) {
			defer s.store.Stall()()
			time.Sleep(time.Minute)
		},
		interlock.LostStalled: func(_ *testing.T, s scene) {
			s.machine.suspend(time.Minute)
			time.Sleep(time.Millisecond)
			_ = s.lease.Err()
		},
		interlock.LostSession: func(_ *testing.T, s scene) { s.store.EndSessions() },
		interlock.LostGone:    func(_ *testing.T, s scene) { s.store.Lose("m") },
		interlock.LostBroken:  func(t *testing.T, s scene) { breaks(t, s.store.Driver, s.lease, false) },
		interlock.LostMaxHold: func(*testing.T, scene) { time.Sleep(time.Hour) },
		interlock.LostShutdown: func(_ *testing.T, s scene) {
			if err := s.client.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		},
	} {
		t.Run(string(want), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, store := &traces{}, &spy{Driver: memlock.New()}
				c, machine := newSleepingClient(t, store, &interlock.Options{Tracer: r})
				var o []interlock.LockOption
				if want == interlock.LostMaxHold {
					o = append(o, interlock.MaxHold(time.Hour))
				}
				l := hold(t, c, "m", o...)
				loses(t, scene{store, machine, c, l})
				<-l.Context().Done()
				synctest.Wait()
				held := r.holds()
				if len(held) != 1 || held[0].Reason != want || !errors.Is(held[0].Err, interlock.ErrLost) {
					t.Errorf("told %+v, want one end for the reason %s", held, want)
				}
				l.Release()
				if n := len(r.holds()); n != 1 {
					t.Errorf("after the release of the lost lease %d ends were told, want one", n)
				}
			})
		})
	}
}

// What the store failed with last is no reason: here it said of another claim that it is gone, and
// that the session is lost.
func TestTracer_ReasonIsNotWhatTheStoreSaidOfOthers(t *testing.T) {
	for _, said := range []error{driver.ErrGone, driver.ErrBroken, interlock.ErrClosed} {
		bubble(t, func(t *testing.T) {
			r, store := &traces{}, &spy{Driver: memlock.New()}
			c := newClient(t, store, &interlock.Options{Tracer: r})
			l := hold(t, c, "m")
			store.ahead(func(_ context.Context, op string, _ driver.Claim) error {
				if op == "renew" {
					return said
				}
				return nil
			})
			told(t, l)
			synctest.Wait()
			if held := r.holds(); len(held) != 1 || held[0].Reason != interlock.LostExpired {
				t.Errorf("renewals failed with %v: told %+v, want one end because the lease expired", said, held)
			}
			store.ahead(nil)
			l.Release()
		})
	}
}

// A loss of which the store speaks only when the lease is released, and a release that it has not
// confirmed.
func TestTracer_EndsThatTheReleaseTells(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, store := &traces{}, &spy{Driver: memlock.New()}
		c := newClient(t, store, &interlock.Options{Tracer: r})
		l := hold(t, c, "m")
		store.Forget("m")
		if err := l.Release(); !errors.Is(err, interlock.ErrLost) {
			t.Errorf("release of a forgotten claim: %v", err)
		}
		if d := r.holds()[0]; d.Reason != interlock.LostGone || !errors.Is(d.Err, interlock.ErrLost) {
			t.Errorf("told %+v, want a loss because the claim is gone", d)
		}
		l = hold(t, c, "m")
		resume := store.Stall()
		defer resume()
		if err := l.Release(); !errors.Is(err, interlock.ErrUncertain) {
			t.Errorf("release at a silent store: %v", err)
		}
		if d := r.holds()[1]; d.Reason != "" || !errors.Is(d.Err, interlock.ErrUncertain) {
			t.Errorf("told %+v, want a release that is not confirmed, and no loss", d)
		}
	})
}

// Each way a wait ends is a word of its own.
func TestTracer_ResultsOfWaits(t *testing.T) {
	within := func(d time.Duration, stop func(context.Context, time.Duration) (context.Context, context.CancelFunc)) func(*testing.T, *interlock.Client) error {
		return func(t *testing.T, c *interlock.Client) error {
			t.Helper()
			ctx, cancel := stop(t.Context(), d)
			defer cancel()
			_, err := c.Mutex("m").Lock(ctx)
			return err
		}
	}
	cancelled := func(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(d, cancel)
		return ctx, cancel
	}
	for _, c := range []struct {
		what   string
		silent bool // the store, and else somebody holds
		lock   func(t *testing.T, c *interlock.Client) error
		want   interlock.Result
	}{
		{"a try", false, func(t *testing.T, c *interlock.Client) error {
			_, err := c.Mutex("m").TryLock(t.Context())
			return err
		}, interlock.Held},
		{"a wait that is over", false, func(t *testing.T, c *interlock.Client) error {
			_, err := c.Mutex("m", interlock.Wait(time.Second)).Lock(t.Context())
			return err
		}, interlock.Held},
		{"a deadline", false, within(time.Second, context.WithTimeout), interlock.TimedOut},
		{"a cancellation", false, within(time.Second, cancelled), interlock.Cancelled},
		{"a try at a silent store", true, func(t *testing.T, c *interlock.Client) error {
			_, err := c.Mutex("m").TryLock(t.Context())
			return err
		}, interlock.Unavailable},
		{"the patience with a silent store", true, within(time.Hour, context.WithTimeout), interlock.Unavailable},
		{"a deadline at a silent store", true, within(time.Second, context.WithTimeout), interlock.Unavailable},
		{"a cancellation at a silent store", true, within(time.Second, cancelled), interlock.Cancelled},
		{"a deadlock", false, func(t *testing.T, c *interlock.Client) error {
			l := hold(t, c, "n")
			defer l.Release()
			_, err := c.Mutex("n").Lock(l.Context())
			return err
		}, interlock.Failed},
		{"the end of the client", false, func(t *testing.T, c *interlock.Client) error {
			_ = c.Close()
			_, err := c.Mutex("m").Lock(t.Context())
			return err
		}, interlock.Failed},
	} {
		bubble(t, func(t *testing.T) {
			store, r := memlock.New(), &traces{}
			near := store.Share()
			client := newClient(t, near, &interlock.Options{Tracer: r})
			l := hold(t, newClient(t, store, nil), "m")
			if c.silent {
				defer near.Stall()()
			}
			err := c.lock(t, client)
			if err == nil {
				t.Fatalf("%s: granted", c.what)
			}
			if got := r.ended[len(r.ended)-1]; got.Result != c.want || !errors.Is(err, got.Err) {
				t.Errorf("%s: told %+v of %v, want %q", c.what, got, err, c.want)
			}
			l.Release()
		})
	}
}

// Slack is what the lease that is nearest to its end had left when the renewal was answered: a
// store that answers late, and a process that asks late, come near to 0, and are late before
// anything is lost.
func TestTracer_SlackSaysHowNearALossWas(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, r := &spy{Driver: memlock.New()}, &traces{}
		c := newClient(t, store, &interlock.Options{TTL: 15 * time.Second, Grace: 3 * time.Second, Tracer: r})
		if err := c.Health(t.Context()); err != nil {
			t.Fatal(err)
		}
		first := hold(t, c, "m")
		permits := must[*interlock.Lease](t)(c.Semaphore("s", 2).Acquire(t.Context(), 2))
		time.Sleep(time.Minute)
		store.ahead(func(ctx context.Context, op string, _ driver.Claim) error {
			if op == "renew" {
				slow(ctx, 3*time.Second)
			}
			return nil
		})
		time.Sleep(time.Minute)
		store.ahead(nil)
		time.Sleep(time.Minute)
		release(t, first, permits)
		synctest.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		if d := r.renewed[0]; d.Leases != 0 || d.Slack != 0 || d.Late() {
			t.Errorf("told %+v of a renewal while nothing was held", d)
		}
		late := 0
		for _, d := range r.renewed[1:] {
			if d.Leases != 2 || d.Err != nil {
				t.Errorf("told %+v, want a success for two leases", d)
			}
			if slow := d.Took == 3*time.Second; d.Late() != slow {
				t.Errorf("told %+v, late %t: want that of the slow ones", d, d.Late())
			} else if slow {
				late++
			}
			// Renewals begin every 3.6 to 4 s; what was asked 4 s ago has 8 s of its 12 left, less
			// what the answer took.
			if least := 8*time.Second - d.Took; d.Slack < least-time.Second || d.Slack > 12*time.Second {
				t.Errorf("told %+v, want a slack of about %v", d, least)
			}
		}
		if late == 0 {
			t.Error("no renewal was slow")
		}
	})
}

// Several tracers are told the same, in their order, each with its own context.
func TestTracers_AreEachToldEverything(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := &traces{}, &traces{}
		c := newClient(t, memlock.New(), &interlock.Options{Tracer: interlock.Tracers(a, b)})
		l := hold(t, c, "m")
		time.Sleep(time.Minute)
		release(t, l)
		synctest.Wait()
		for _, r := range []*traces{a, b} {
			r.mu.Lock()
			if len(r.started) != 1 || len(r.ended) != 1 || len(r.held) != 1 || len(r.renewed) == 0 {
				t.Errorf("told of %d starts, %d ends, %d holds, %d renewals; want one of each, and renewals", len(r.started), len(r.ended), len(r.held), len(r.renewed))
			}
			r.mu.Unlock()
		}
	})
}

// contextless is a tracer that keeps no context, and returns none.
type contextless struct{ traces }

func (r *contextless) WaitStart(ctx context.Context, d interlock.WaitStart) context.Context {
	r.traces.WaitStart(ctx, d)
	return nil
}

// A tracer that returns no context leaves the one it was given, also to those after it.
func TestTracer_WithoutAContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx := context.WithValue(t.Context(), traceKey{}, "the caller's")
		none, after := &contextless{}, &traces{}
		for name, tracer := range map[string]interlock.Tracer{"alone": none, "of two": interlock.Tracers(none, after)} {
			l := lock(ctx, t, newClient(t, memlock.New(), &interlock.Options{Tracer: tracer}).Mutex("m"))
			if want := map[string]any{"alone": "the caller's", "of two": 1}[name]; l.Context().Value(traceKey{}) != want {
				t.Errorf("%s: the lease's context has %v, want %v", name, l.Context().Value(traceKey{}), want)
			}
			release(t, l)
		}
		synctest.Wait()
		for _, ctx := range slices.Concat(none.contexts, after.contexts) {
			if ctx == nil {
				t.Error("an end is told with no context")
			}
		}
	})
}
