package interlock_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

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
