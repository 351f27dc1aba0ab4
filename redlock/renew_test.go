package redlock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
)

// L10: one master of three renews a claim, another one has lost it, and the third does not answer.
// What one master has renewed is no lease: the trust stays as it was, and the next renewal tries
// again.
func TestL10_ARenewalOfAMinorityIsNone(t *testing.T) {
	set := startMasters(t, 3)
	d, wires := wired(t, set, "?node_timeout=500ms")
	s := session(t, d, time.Minute)
	c := mutex("part", true)
	if g, err := acquire(t.Context(), s, c); err != nil {
		t.Fatalf("three masters: %+v, %v", g, err)
	}
	until(t, 20*time.Second, "held by all three", func() bool {
		return ours(t, set[0], "part") && ours(t, set[1], "part") && ours(t, set[2], "part")
	})
	if _, err := s.Renew(t.Context()); err != nil {
		t.Fatalf("a renewal by all three: %v", err)
	}
	set[1].MustDo(t, "DEL", "part")
	occupy(t, "part", set[1])
	heal := wires[2].Stall(wire.Both)
	if r, err := s.Renew(t.Context()); err == nil {
		t.Errorf("one master of three has renewed, and the claim counts as renewed for %v, lost %v", r.Valid, r.Lost)
	}
	heal()
	until(t, 20*time.Second, "renewed by the two masters that are left", func() bool {
		r, err := s.Renew(t.Context())
		if len(r.Lost) > 0 {
			t.Fatalf("a claim that two of three masters have is lost: %+v", r)
		}
		return err == nil
	})
	if held, err := s.Release(t.Context(), c); !held || err != nil {
		t.Errorf("release: %v, %v", held, err)
	}
}

// Two of three masters restart at once. A renewal says so, as long as they wait.
func TestARenewalSaysWhichMastersWait(t *testing.T) {
	t.Parallel()
	set, _, _, s, c := holding(t, "says")
	for _, one := range set[1:] {
		if err := one.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	until(t, 30*time.Second, "taken in by both", func() bool {
		var lost []driver.Loss
		if lost, err = renew(t, s); err == nil || len(lost) > 0 {
			t.Fatalf("with one master that votes: lost %v, error %v; want no renewal", lost, err)
		}
		return ours(t, set[1], c.Name) && ours(t, set[2], c.Name)
	})
	denied(t, s, "with two that wait", "3 of 3 masters answered, and 2 of these refused, want 2 or more that do not")
}

// scripts is how many scripts a server has run.
func scripts(t *testing.T, s *servertest.Server) (n int) {
	t.Helper()
	for line := range strings.Lines(s.MustDo(t, "INFO", "commandstats")) {
		var calls int
		if _, err := fmt.Sscanf(line, "cmdstat_evalsha:calls=%d,", &calls); err == nil {
			n += calls
		}
	}
	return n
}

// However many masters are to be taken in, a renewal asks each of them once for every hundred
// claims.
func TestARenewalAsksEachMasterOnce(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	s := session(t, open(t, urlOf(addrs(set))+endless), endlessTTL)
	const claims, renewals = 150, 10
	occupy(t, "once 0", set[0]) // it cannot be taken in
	for i := range claims {
		if g, err := s.Acquire(t.Context(), mutex(fmt.Sprint("once ", i), false)); !g.Held || err != nil {
			t.Fatalf("a free name: %+v, %v", g, err)
		}
	}
	everywhere(t, set, fmt.Sprint("once ", claims-1))
	renews(t, s, "with all three")
	for _, one := range set {
		one.MustDo(t, "CONFIG", "RESETSTAT")
	}
	for i := range renewals {
		set[1].MustDo(t, "DEL", fmt.Sprint("once ", i+1)) // it is missed, and taken in
		renews(t, s, "one by one")
	}
	for i, one := range set {
		asked := scripts(t, one)
		if asked > 2*renewals+2 { // the one before may be late
			t.Errorf("master %d was asked %d times in %d renewals of %d claims, want twice in each", i+1, asked, renewals, claims)
		}
	}
}
