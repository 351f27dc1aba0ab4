package redlock_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redlock"
)

// One master's counter is ahead of the others'. The token of a grant there is stored at a majority
// before it is told, so that whoever is granted by the others next has a larger one.
func TestRaise(t *testing.T) {
	set := startMasters(t, 3)
	d := open(t, urlOf(addrs(set)))
	s := session(t, d, 5*time.Second)
	ahead := time.Now().Add(time.Hour).UnixMicro() / 64 * 64
	set[0].MustDo(t, "SET", "il:{raise}:qfence:raise", strconv.FormatInt(ahead, 10))
	last := uint64(0)
	for _, out := range []int{2, 0, 1} {
		occupy(t, "raise", set[out])
		other := session(t, open(t, urlOf(addrs(set))), 5*time.Second) // which has seen no counter
		c := mutex("raise", true)
		g, err := acquire(t.Context(), other, c)
		if err != nil {
			t.Fatal(err)
		}
		if g.Fence < last+driver.Stride {
			t.Errorf("without master %d: token %d after %d, want a larger one", out+1, g.Fence, last)
		}
		last = g.Fence
		_, _ = other.Release(t.Context(), c)
		set[out].MustDo(t, "DEL", "raise")
	}
	_ = s
	if last < uint64(ahead) {
		t.Errorf("token %d: the counter that was ahead, %d, was not met", last, ahead)
	}
}

// Q3: the clocks of two masters of three jump past the end of a lease, and somebody gets in beside
// its holder, as no lock can prevent that lives by these clocks. The second one has the larger
// token, by which the resource refuses the first, also where the counters were ahead of everybody's
// clock.
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

// What a master says to a raise counts from when it was asked, not from when its answer came: its
// key ends a TTL after the former, at the earliest.
func TestRaiseCountsFromItsSending(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	s := session(t, open(t, urlOf(addrs(set))+patient), time.Minute)
	c := mutex("raise", false)
	if g, err := acquire(t.Context(), s, c); err != nil || !g.Held {
		t.Fatalf("three masters: %+v, %v", g, err)
	}
	everywhere(t, set, c.Name)
	since := time.Now()
	from, err := redlock.Raise(t.Context(), s, c.ID, since)
	if err != nil {
		t.Fatal(err)
	}
	for i, from := range from {
		if !from.Equal(since) {
			t.Errorf("master %d, asked to raise the token, counts from %v after that, want from then", i+1, from.Sub(since))
		}
	}
	if held, err := s.Release(t.Context(), c); !held || err != nil {
		t.Errorf("release: %v, %v", held, err)
	}
}
