package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// A7: held by another, could not tell, lost, and no longer held are one error.
func TestA07_EachFaultHasItsError(t *testing.T) {
	sentinels := []error{
		interlock.ErrHeld, interlock.ErrLost, interlock.ErrReleased, interlock.ErrDeadlock, interlock.ErrUncertain,
		interlock.ErrUnavailable, interlock.ErrClosed, interlock.ErrTooManyWaiters, interlock.ErrMaxHold,
		context.Canceled, context.DeadlineExceeded, errors.ErrUnsupported, driver.ErrRefused, driver.ErrName, driver.ErrBroken,
	}
	type setting struct {
		store    *memlock.Driver // of client and other
		client   *interlock.Client
		other    *interlock.Client
		deadline context.Context // over in a second
	}
	for _, c := range []struct {
		fault string
		err   func(t *testing.T, s setting) error
		want  []error
	}{
		{"try while held", func(t *testing.T, s setting) error {
			lock(t.Context(), t, s.other.Mutex("m"))
			_, err := s.client.Mutex("m").TryLock(t.Context())
			return err
		}, []error{interlock.ErrHeld}},
		{"wait while held", func(t *testing.T, s setting) error {
			lock(t.Context(), t, s.other.Mutex("m"))
			_, err := s.client.Mutex("m", interlock.Wait(time.Second)).Lock(t.Context())
			return err
		}, []error{interlock.ErrHeld}},
		{"deadline while held", func(t *testing.T, s setting) error {
			lock(t.Context(), t, s.other.Mutex("m"))
			_, err := s.client.Mutex("m").Lock(s.deadline)
			return err
		}, []error{interlock.ErrHeld, context.DeadlineExceeded}},
		{"try while the store fails", func(t *testing.T, s setting) error {
			s.store.Fail(errors.New("refused"))
			_, err := s.client.Mutex("m").TryLock(t.Context())
			return err
		}, []error{interlock.ErrUnavailable}},
		{"wait while the store is silent", func(t *testing.T, s setting) error {
			t.Cleanup(s.store.Stall())
			_, err := s.client.Mutex("m").Lock(t.Context())
			return err
		}, []error{interlock.ErrUnavailable, context.DeadlineExceeded}},
		{"deadline while the store is silent", func(t *testing.T, s setting) error {
			t.Cleanup(s.store.Stall())
			_, err := s.client.Mutex("m").Lock(s.deadline)
			return err
		}, []error{interlock.ErrUnavailable, context.DeadlineExceeded}},
		{"cancelled before", func(t *testing.T, s setting) error {
			<-s.deadline.Done()
			_, err := s.client.Mutex("m").Lock(s.deadline)
			return err
		}, []error{context.DeadlineExceeded}},
		{"again in its own context", func(t *testing.T, s setting) error {
			_, err := s.client.Mutex("m").Lock(lock(t.Context(), t, s.client.Mutex("m")).Context())
			return err
		}, []error{interlock.ErrDeadlock}},
		{"lost", func(t *testing.T, s setting) error {
			l := lock(t.Context(), t, s.client.Mutex("m"))
			s.store.Lose("m")
			return l.Err()
		}, []error{interlock.ErrLost}},
		{"release of a lost one", func(t *testing.T, s setting) error {
			l := lock(t.Context(), t, s.client.Mutex("m"))
			s.store.Lose("m")
			return l.Release()
		}, []error{interlock.ErrLost}},
		{"after the release", func(t *testing.T, s setting) error {
			l := lock(t.Context(), t, s.client.Mutex("m"))
			release(t, l)
			return l.Err()
		}, []error{interlock.ErrReleased}},
		{"release while the store is silent", func(t *testing.T, s setting) error {
			l := lock(t.Context(), t, s.client.Mutex("m"))
			t.Cleanup(s.store.Stall())
			return l.Release()
		}, []error{interlock.ErrUncertain, context.DeadlineExceeded}},
		{"held for its maximum", func(t *testing.T, s setting) error {
			l := lock(t.Context(), t, s.client.Mutex("m", interlock.MaxHold(5*time.Second)))
			<-l.Context().Done()
			return context.Cause(l.Context())
		}, []error{interlock.ErrLost, interlock.ErrMaxHold}},
		{"silence for longer than the lease", func(t *testing.T, s setting) error {
			l := lock(t.Context(), t, s.client.Mutex("m"))
			t.Cleanup(s.store.Stall())
			<-l.Context().Done()
			return context.Cause(l.Context())
		}, []error{interlock.ErrLost, interlock.ErrUnavailable}},
		{"closed", func(t *testing.T, s setting) error {
			if err := s.client.Close(); err != nil {
				t.Error(err)
			}
			_, err := s.client.Mutex("m").Lock(t.Context())
			return err
		}, []error{interlock.ErrClosed}},
		{"a mutex's name as a semaphore", func(t *testing.T, s setting) error {
			lock(t.Context(), t, s.other.Mutex("m"))
			_, err := s.client.Semaphore("m", 1).Acquire(t.Context(), 1)
			return err
		}, []error{driver.ErrRefused, driver.ErrName}},
		{"broken while waiting", func(t *testing.T, s setting) error {
			lock(t.Context(), t, s.other.Mutex("m"))
			a := background(func() (*interlock.Lease, error) { return s.client.Mutex("m").Lock(t.Context()) })
			synctest.Wait()
			if err := s.store.Break(t.Context(), "m", claims(t, s.store, "m")[1].PublicID, 0, false); err != nil {
				t.Error(err)
			}
			<-a.done
			return a.err
		}, []error{driver.ErrBroken}},
	} {
		t.Run(c.fault, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				store := memlock.New()
				deadline, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				s := setting{store, newClient(t, store, nil), newClient(t, store, nil), deadline}
				err := c.err(t, s)
				sentinels := sentinels
				if c.fault == "silence for longer than the lease" { // the renewal ends at the same moment, or just before
					sentinels = slices.DeleteFunc(slices.Clone(sentinels), func(e error) bool { return e == context.DeadlineExceeded }) //nolint:errorlint // the value itself
				}
				for _, sentinel := range sentinels {
					if got, want := errors.Is(err, sentinel), slices.Contains(c.want, sentinel); got != want {
						t.Errorf("%v: matches %q: %t, want %t", err, sentinel, got, want)
					}
				}
				s.store.Fail(nil)
			})
		})
	}
}

// A8: a lease that many goroutines use races.
func TestA08_ALeaseIsSafeForConcurrentUse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		tracer := &traces{}
		d := &tap{Driver: memlock.New()}
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
		if n := len(d.made("release")); n != 1 {
			t.Errorf("%d releases were sent", n)
		}
		if n := len(tracer.holds()); n != 1 {
			t.Errorf("the hold ended %d times", n)
		}
	})
}

// A9: the owner is a value that the caller supplies, and that others guess.
func TestA09_TheLabelIsNoSecretAndNoIdentity(t *testing.T) {
	for _, label := range []string{"m", "worker", "", strings.Repeat("x", 2000), "a\"b\\c", "\xff"} {
		bubble(t, func(t *testing.T) {
			d := &tap{Driver: memlock.New()}
			o := &interlock.Options{Owner: label}
			a, b := newClient(t, d, o), newClient(t, d, o)
			release(t, lock(t.Context(), t, a.Mutex("m")))
			release(t, lock(t.Context(), t, b.Mutex("m")))
			ids := map[string]bool{}
			for _, call := range d.made("acquire") {
				if id := call.claim.ID; len(id) != 22 || ids[id] {
					t.Fatalf("ID %q: want 128 random bits in 22 characters, new each time", id)
				}
				ids[call.claim.ID] = true
			}
			l := lock(t.Context(), t, a.Mutex("m"))
			_, err := b.Mutex("m").TryLock(t.Context())
			matches(t, err, interlock.ErrHeld)
			for id := range ids {
				if strings.Contains(err.Error(), id) || strings.Contains(fmt.Sprintf("%+v", claims(t, d.Driver, "m")), id) {
					t.Error("a secret is shown")
				}
			}
			release(t, l)
		})
	}
}

// A10: durations that are zero, negative, tiny, huge or of the wrong unit.
func TestA10_AnyDurationIsRefusedOrKept(t *testing.T) {
	durations := []time.Duration{
		math.MinInt64, -time.Second, -1, 0, 1, time.Microsecond, time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 9 * time.Millisecond, 10 * time.Millisecond,
		time.Second, 15 * time.Second, time.Hour, 24 * time.Hour, 25 * time.Hour, math.MaxInt64 - 1, math.MaxInt64,
	}
	some := func() time.Duration { return durations[rand.IntN(len(durations))] }
	possible := 0
	for i := range 300 {
		ttl, grace, wait, least, most := some(), some(), some(), some(), some()
		if i < len(durations) {
			ttl = durations[i]
		}
		o := []interlock.LockOption{interlock.TTL(ttl)}
		if rand.IntN(2) == 0 {
			o = append(o, interlock.Grace(grace))
		}
		o = append(o, interlock.Wait(wait), interlock.MinHold(least), interlock.MaxHold(most))
		if o = o[:1+rand.IntN(len(o))]; i < len(durations) {
			o = o[:1]
		}
		what := fmt.Sprintf("%d of ttl %v, grace %v, wait %v, least %v, most %v", len(o), ttl, grace, wait, least, most)
		bubble(t, func(t *testing.T) {
			store := memlock.New()
			c := must[*interlock.Client](t)(interlock.New(store, nil))
			m := c.Mutex("m", o...)
			l, err := m.Lock(t.Context())
			if m.Err() != nil {
				if err == nil || store.Calls() != 0 {
					t.Errorf("%s: %v with %d calls", what, err, store.Calls())
				}
				return
			}
			possible++
			if err != nil {
				t.Errorf("%s: Err is nil, and Lock fails: %v", what, err)
				return
			}
			if trust := time.Until(l.Until()); trust <= 0 || trust > ttl-2*time.Millisecond {
				t.Errorf("%s: trusted for %v", what, trust)
			}
			if until := claims(t, store, "m")[0].Until; until.IsZero() || time.Until(until) > ttl {
				t.Errorf("%s: kept for %v without renewal", what, time.Until(until))
			}
			release(t, l)
			store.EndSessions() // then there is nothing to keep for the least time
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	if possible == 0 {
		t.Error("every combination was refused")
	}
	// A store without a maximum: nothing wraps around.
	bubble(t, func(t *testing.T) {
		c := newClient(t, limitless{memlock.New()}, nil)
		l := lock(t.Context(), t, c.Mutex("m", interlock.TTL(math.MaxInt64)))
		time.Sleep(time.Hour)
		if err := l.Err(); err != nil || time.Until(l.Until()) < time.Hour {
			t.Errorf("%v, until %v", err, l.Until())
		}
		release(t, l)
	})
}

// limitless is a store that takes any TTL.
type limitless struct{ *memlock.Driver }

func (d limitless) Traits() driver.Traits {
	traits := d.Driver.Traits()
	traits.MaxTTL = 0
	return traits
}

func (d limitless) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	asked := spec.TTL
	spec.TTL = min(asked, 24*time.Hour)
	s, err := d.Driver.Open(ctx, spec)
	return limitlessSession{s, asked}, err
}

type limitlessSession struct {
	driver.Session
	valid time.Duration
}

func (s limitlessSession) Valid() time.Duration { return s.valid }

func (s limitlessSession) Renew(ctx context.Context) (driver.Renewal, error) {
	r, err := s.Session.Renew(ctx)
	r.Valid = s.valid
	return r, err
}
