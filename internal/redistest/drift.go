package redistest

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
)

// TryDrift tries that a claim is trusted for less than a majority of its servers keep it, by a
// hundredth and 2 ms, because clocks drift. What a server keeps it for is reckoned by that server's
// clock and from before the request, so no machine is too slow for this. The name is also the key
// that is locked.
func TryDrift(t *testing.T, d driver.Driver, name string, servers ...*servertest.Server) {
	t.Helper()
	for _, ttl := range []time.Duration{time.Second, 20 * time.Second, time.Minute} {
		s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		most := ttl - ttl/100 - 2*time.Millisecond
		keeps := func(what string, trusted time.Duration, before []int64) {
			var kept []time.Duration
			for i, s := range servers {
				end := number(t, s, `local t = redis.call('TIME') return t[1] * 1000 + math.floor(t[2] / 1000) + redis.call('PTTL', KEYS[1])`, name)
				kept = append(kept, time.Duration(end-before[i])*time.Millisecond)
			}
			slices.Sort(kept)
			// Its clock may be set by a millisecond, as any is that follows another one, between
			// the two readings.
			if least := kept[(len(kept)-1)/2]; trusted > most || least < ttl-time.Millisecond {
				t.Errorf("%s with a TTL of %v: kept for %v and trusted for %v, want the TTL at least, but for a millisecond, and %v at most", what, ttl, least, trusted, most)
			}
		}
		now := func() (all []int64) {
			for _, s := range servers {
				all = append(all, number(t, s, `local t = redis.call('TIME') return t[1] * 1000 + math.floor(t[2] / 1000)`, name))
			}
			return all
		}
		c, before := exclusive(name, false), now()
		if g, err := s.Acquire(t.Context(), c); err != nil || !g.Held {
			t.Fatalf("a free name: held %v, %v", g.Held, err)
		}
		keeps("acquired", s.Valid(), before)
		before = now()
		r, err := s.Renew(t.Context())
		if err != nil || len(r.Lost) > 0 {
			t.Fatalf("renewed: %+v, %v", r, err)
		}
		keeps("renewed", r.Valid, before)
		if held, err := s.Release(t.Context(), c); err != nil || !held {
			t.Fatalf("released: held %v, %v", held, err)
		}
	}
}

// number is what a script answers that reads one key.
func number(t *testing.T, s *servertest.Server, script, key string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s.MustDo(t, "EVAL", script, "1", key), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
