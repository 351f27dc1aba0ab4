package redlock_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver/drivertest/wire"
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
