package redlock_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
)

// Two of three masters know a token that is ahead of all clocks, and one of them forgets it. When
// it votes again, it and the one that never knew the token give no smaller one.
func TestAMasterThatForgotDrawsAboveWhatTheOthersKnow(t *testing.T) {
	t.Parallel()
	for _, queue := range []bool{false, true} {
		t.Run(fmt.Sprintf("queue=%v", queue), func(t *testing.T) {
			t.Parallel()
			set := startMasters(t, 3)
			url := urlOf(addrs(set)) + "?max_ttl=1s"
			s := session(t, open(t, url), time.Second)
			ahead := time.Now().Add(time.Hour).UnixMicro() / 64 * 64
			set[0].MustDo(t, "SET", "il:{floor}:qfence:floor", strconv.FormatInt(ahead, 10))
			// grant has a claim get two masters, at once or out of their lines.
			grant := func(s driver.Session, queue bool, out *servertest.Server, two ...*servertest.Server) (token uint64) {
				occupy(t, "floor", out)
				if queue {
					occupy(t, "floor", two...)
				}
				until(t, 30*time.Second, "granted by two masters", func() bool {
					c := mutex("floor", queue)
					defer func() { _, _ = s.Release(t.Context(), c) }()
					g, err := s.Acquire(t.Context(), c)
					if err != nil {
						return false
					}
					for _, one := range two {
						one.MustDo(t, "EVAL", "if redis.call('GET', KEYS[1]) == 'theirs' then redis.call('DEL', KEYS[1]) end", "1", "floor")
					}
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					for err == nil && queue && !g.Held {
						g, err = s.Wait(ctx, c)
					}
					token = g.Fence
					return err == nil && g.Held
				})
				out.MustDo(t, "DEL", "floor")
				return token
			}
			first := grant(s, false, set[1], set[0], set[2])
			if err := set[2].Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			until(t, 30*time.Second, "a vote of the master that forgot", func() bool {
				try := mutex("wakes", false)
				_, _ = s.Acquire(t.Context(), try)
				_, _ = s.Release(t.Context(), try)
				return votes(t, set[2])
			})
			fresh := session(t, open(t, url), time.Second) // which has seen no counter
			if next := grant(fresh, queue, set[0], set[1], set[2]); next < first+driver.Stride {
				t.Errorf("token %d after %d", next, first)
			}
		})
	}
}

// Two of three masters know a token that is ahead of all clocks. One forgets it, and votes again;
// then the other one does. The first has drawn nothing meanwhile, and yet the second one hears of
// the token from it.
func TestAMasterPassesOnWhatItWasTold(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	url := urlOf(addrs(set)) + "?max_ttl=1s"
	s := session(t, open(t, url), time.Second)
	set[0].MustDo(t, "SET", "il:{passes}:qfence:passes", strconv.FormatInt(time.Now().Add(time.Hour).UnixMicro()/64*64, 10))
	grant := func(s driver.Session, out *servertest.Server) (token uint64) {
		occupy(t, "passes", out)
		until(t, 30*time.Second, "granted by two masters", func() bool {
			c := mutex("passes", false)
			defer func() { _, _ = s.Release(t.Context(), c) }()
			g, err := s.Acquire(t.Context(), c)
			token = g.Fence
			return err == nil && g.Held
		})
		out.MustDo(t, "DEL", "passes")
		return token
	}
	first := grant(s, set[1])
	for _, one := range []*servertest.Server{set[2], set[0]} {
		if err := one.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		until(t, 30*time.Second, "a vote of the master that forgot", func() bool {
			occupy(t, "nothing", set...) // so that nothing is drawn
			try := mutex("nothing", false)
			_, _ = s.Acquire(t.Context(), try)
			_, _ = s.Release(t.Context(), try)
			return votes(t, one)
		})
	}
	if next := grant(session(t, open(t, url), time.Second), set[2]); next < first+driver.Stride {
		t.Errorf("token %d after %d", next, first)
	}
}

// Whatever script draws a token or writes one back, the master knows one that is no smaller as its
// largest.
func TestAMasterKnowsItsLargestCounter(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	set[0].MustDo(t, "SET", "il:{crowd}:qfence:crowd", strconv.FormatInt(time.Now().Add(time.Hour).UnixMicro()/64*64, 10))
	check := func(what string) {
		t.Helper()
		for i, one := range set {
			counter, _ := strconv.ParseUint(one.MustDo(t, "GET", "il:{crowd}:qfence:crowd"), 10, 64)
			high, _ := strconv.ParseUint(one.MustDo(t, "GET", "il:{redlock}:high"), 10, 64)
			if counter == 0 || high < counter-counter%2 {
				t.Errorf("%s: master %d has a counter of %d, and takes %d for its largest", what, i+1, counter, high)
			}
		}
	}
	s := session(t, open(t, urlOf(addrs(set))), time.Minute)
	c := mutex("crowd", false)
	if _, err := acquire(t.Context(), s, c); err != nil {
		t.Fatal(err)
	}
	everywhere(t, set, "crowd")
	check("a token that was written back")
	if _, err := s.Release(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for _, turn := range []bool{false, true} {
		crowd(t, 4, 30, func(int) string { return urlOf(addrs(set)) }, 5*time.Second, turn, nil)
		check("handoffs")
	}
}
