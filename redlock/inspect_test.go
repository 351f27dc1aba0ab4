package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
)

// A release returns when a majority has let the claim go. Whoever looks then does not see it, although it still stands on
// the masters that the release has not reached.
func TestLine_ShowsNobodyOfAMinority(t *testing.T) {
	set := startMasters(t, 5)
	wires, all := make([]*wire.Wire, len(set)), make([]string, len(set))
	for i, s := range set {
		wires[i] = wire.New(t, s.Addr())
		all[i] = wires[i].Addr()
	}
	d := open(t, urlOf(addrs(set)))
	holder, waiter := session(t, d, time.Minute), session(t, open(t, urlOf(all)), time.Minute)
	held, waits := mutex("line", true), mutex("line", true)
	within(t, "an acquire", func(ctx context.Context) error { _, err := acquire(ctx, holder, held); return err })
	everywhere(t, set, "line") // else who waits might take one of them
	within(t, "a claim that queues", func(ctx context.Context) error { _, err := waiter.Acquire(ctx, waits); return err })
	for _, s := range set { // else it might not stand at those that the release does not reach
		until(t, 30*time.Second, "in line everywhere", func() bool { return s.MustDo(t, "ZCARD", "il:{line}:qline:line") == "1" })
	}
	shows := func() int {
		line, err := d.Line(t.Context(), "line")
		if err != nil {
			t.Fatal(err)
		}
		return len(line.Claims)
	}
	until(t, 30*time.Second, "the holder and the waiter are shown", func() bool { return shows() == 2 })

	for _, i := range []int{1, 3} {
		defer wires[i].Stall(wire.Both)()
	}
	within(t, "a release", func(ctx context.Context) error { _, err := waiter.Release(ctx, waits); return err })
	if n := shows(); n != 1 {
		t.Errorf("%d claims are shown, want the holder alone: the other one stands on a minority only", n)
	}
}

// A claim is held by three of five masters, of which one is late with its answer to who looks. That one decides: it is waited for, and
// where it does not answer at all the claim is broken neither as one that waits nor as one that holds.
func TestBreak_OfAClaimThatMissingMastersDecide(t *testing.T) {
	set := startMasters(t, 5)
	s := session(t, open(t, urlOf(addrs(set))), time.Minute)
	d, wires := wired(t, set, "?node_timeout=30s")
	if _, err := d.Line(t.Context(), "line"); err != nil { // which has met all of them
		t.Fatal(err)
	}
	held := mutex("line", false)
	occupy(t, "line", set[3:]...)
	var g driver.Grant
	within(t, "an acquire", func(ctx context.Context) (err error) { g, err = acquire(ctx, s, held); return err })
	heal := wires[1].Stall(wire.Replies)
	seen := make(chan driver.Line, 1)
	go func() {
		l, err := d.Line(t.Context(), "line")
		if err != nil {
			t.Error(err)
		}
		seen <- l
	}()
	until(t, 30*time.Second, "the others have answered for long", func() bool { return d.Vain()[1] > 0 })
	heal()
	if l := <-seen; len(l.Claims) == 0 || !l.Claims[0].Held || l.Claims[0].Fence != g.Fence {
		t.Errorf("line %+v, want one held with token %d", l.Claims, g.Fence)
	}
	hasty, wires := wired(t, set, "")
	defer wires[1].Stall(wire.Replies)()
	for _, fence := range []uint64{0, g.Fence} {
		if err := hasty.Break(t.Context(), "line", driver.PublicID(held.ID), fence, false); err == nil || errors.Is(err, driver.ErrRefused) {
			t.Errorf("break with token %d: %v, want that too few masters answered", fence, err)
		}
	}
	if held, err := s.Release(t.Context(), held); err != nil || !held {
		t.Errorf("release: %v, %v", held, err)
	}
}
