package redlock_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// A16: every two of three users of a semaphore can have two of three masters on their side, so a limit of two would let in
// all three; the same goes for a reader and a writer. Such locks are refused, and no master is asked.
func TestA16_MajoritiesDoNotCount(t *testing.T) {
	set := startMasters(t, 3)
	client := redistest.OpenClient(t, urlOf(addrs(set)), nil)
	if _, err := client.Semaphore("users", 2).TryAcquire(t.Context(), 1); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a permit of a semaphore over three masters: %v, want %v", err, errors.ErrUnsupported)
	}
	if _, err := client.RWMutex("readers").TryRLock(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a read lock over three masters: %v, want %v", err, errors.ErrUnsupported)
	}
	s := session(t, open(t, urlOf(addrs(set))), time.Minute)
	for _, c := range []driver.Claim{
		{Name: "users", ID: driver.NewID(), Kind: driver.Permit, Weight: 1, Limit: 2},
		{Name: "readers", ID: driver.NewID(), Kind: driver.Read, Weight: 1, Limit: driver.All},
	} {
		if g, err := s.Acquire(t.Context(), c); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("a %s claim over three masters: %+v, %v, want %v", c.Kind, g, err, driver.ErrRefused)
		}
		for i, server := range set {
			if server.MustDo(t, "EXISTS", c.Name) != "0" {
				t.Errorf("a %s claim that is to be refused stands on master %d", c.Kind, i+1)
			}
		}
	}
}

// L10: one master of three renews a claim, another one has lost it, and the third does not answer. What one master has
// renewed is no lease: the trust stays as it was, and the next renewal tries again.
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

// Q3: the clocks of two masters of three jump past the end of a lease, and somebody gets in beside its holder, as no lock
// can prevent that lives by these clocks. The second one has the larger token, by which the resource refuses the first, also
// where the counters were ahead of everybody's clock.
func TestQ03_TwoHoldAndTheirTokensAreInOrder(t *testing.T) {
	set := make([]*servertest.Server, 3)
	ahead := strconv.FormatInt(time.Now().Add(time.Hour).UnixMicro()/64*64, 10)
	for i := range set {
		s, err := servertest.Start(t.Context(), servertest.Options{Clock: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		s.MustDo(t, "SET", "il:{jump}:qfence:jump", ahead)
		set[i] = s
	}
	const ttl = time.Minute
	first := session(t, open(t, urlOf(addrs(set))), ttl)
	c := mutex("jump", true)
	one, err := acquire(t.Context(), first, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range set { // a request that comes after the jump would count from then on
		until(t, ttl/2, "held by all three", func() bool { return ours(t, s, "jump") })
	}
	for _, s := range set[1:] {
		if err := s.Step(ttl + time.Second); err != nil {
			t.Fatal(err)
		}
	}
	second := session(t, open(t, urlOf(addrs(set))), ttl) // which has seen no counter
	ctx, cancel := context.WithTimeout(t.Context(), ttl/2)
	defer cancel()
	two, err := acquire(ctx, second, mutex("jump", true))
	if err != nil {
		t.Fatalf("nobody gets in beside the holder, so nothing is shown: %v", err)
	}
	if two.Fence < one.Fence+driver.Stride {
		t.Errorf("two hold after the clocks jumped, and the second has token %d after %d", two.Fence, one.Fence)
	}
	var resource fence.Mark
	if err := resource.Claim(two.Fence); err != nil {
		t.Errorf("the second is refused: %v", err)
	}
	if err := resource.Claim(one.Fence); !errors.Is(err, fence.ErrStale) {
		t.Errorf("the first, after the second: %v, want %v", err, fence.ErrStale)
	}
	if r, err := first.Renew(t.Context()); err == nil && len(r.Lost) == 0 {
		t.Errorf("the first has one master of three, and is renewed: %+v", r)
	}
}
