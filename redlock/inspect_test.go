package redlock_test

import (
	"context"
	"testing"
	"time"

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
	within(t, "a claim that queues", func(ctx context.Context) error { _, err := waiter.Acquire(ctx, waits); return err })
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
