package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redlock"
)

// A release returns when a majority has let the claim go. Whoever looks then does not see it,
// although it still stands on the masters that the release has not reached.
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
	everywhere(t, set, "line")                                   // else who waits might take one of them
	until(t, 30*time.Second, "in line everywhere", func() bool { // else it might not stand at those that the release does not reach
		within(t, "a claim that queues", func(ctx context.Context) error { _, err := waiter.Acquire(ctx, waits); return err })
		return !slices.ContainsFunc(set, func(s *servertest.Server) bool { return s.MustDo(t, "ZCARD", "il:{line}:qline:line") != "1" })
	})
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

// A claim is held by three of five masters, of which one is late with its answer to who looks. That
// one decides: it is waited for, and where it does not answer at all the claim is broken neither as
// one that waits nor as one that holds.
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

// Who waits is shown to wait since it came, although a master has heard of it later than that.
func TestWhoWaitsIsShownSinceItCame(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	d := open(t, urlOf(addrs(set)))
	slow, wires := wired(t, set, "?node_timeout=30s")
	holder, waiter := session(t, d, time.Minute), session(t, slow, time.Minute)
	within(t, "an acquire", func(ctx context.Context) error { _, err := acquire(ctx, holder, mutex("late", false)); return err })
	everywhere(t, set, "late")
	within(t, "an acquire", func(ctx context.Context) error { _, err := acquire(ctx, waiter, mutex("met", false)); return err })
	everywhere(t, set, "met") // by then all masters have their votes
	heal := wires[0].Stall(wire.Requests)
	waits := mutex("late", true)
	within(t, "a claim that queues", func(ctx context.Context) error { _, err := waiter.Acquire(ctx, waits); return err })
	came := time.Now()
	until(t, 30*time.Second, "clocks have gone on", func() bool { return time.Since(came) > 5*time.Millisecond })
	heal()
	until(t, 30*time.Second, "in line at the late one", func() bool {
		within(t, "a claim that queues", func(ctx context.Context) error { _, err := waiter.Acquire(ctx, waits); return err })
		return set[0].MustDo(t, "ZCARD", "il:{late}:qline:late") == "1"
	})
	l, err := d.Line(t.Context(), "late")
	if err != nil || len(l.Claims) != 2 {
		t.Fatalf("line %+v, %v: want the holder and the waiter", l, err)
	}
	if since := l.Claims[1].Since; since.After(came) {
		t.Errorf("it waited at %v, and is shown to wait since %v", came, since)
	}
}

// Who holds is shown to hold since it was granted, alone or after a wait, whatever it renews; and
// nobody since a time to come.
func TestWhoHoldsIsShownSinceItsGrant(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	d := open(t, urlOf(addrs(set)))
	one, two := session(t, d, time.Minute), session(t, open(t, urlOf(addrs(set))), time.Minute)
	first, next := mutex("since", true), mutex("since", true)
	holds := func(c driver.Claim) (since time.Time) {
		t.Helper()
		until(t, 30*time.Second, "shown as the holder", func() bool {
			l, err := d.Line(t.Context(), "since")
			if err != nil {
				t.Fatal(err)
			}
			if len(l.Claims) > 0 && l.Claims[0].Held && l.Claims[0].PublicID == driver.PublicID(c.ID) {
				since = l.Claims[0].Since
				return true
			}
			return false
		})
		return since
	}
	now := func() time.Time { // by the clock of a master, in the steps of its tokens
		first := time.Now()
		for _, s := range set {
			var seconds, micros int64
			if _, err := fmt.Sscan(s.MustDo(t, "TIME"), &seconds, &micros); err != nil {
				t.Fatal(err)
			}
			if at := time.UnixMicro((seconds*1e6 + micros) / 64 * 64); at.Before(first) {
				first = at
			}
		}
		return first.Truncate(time.Millisecond)
	}
	begun := now()
	within(t, "an acquire", func(ctx context.Context) error { _, err := acquire(ctx, one, first); return err })
	since := holds(first)
	if since.Before(begun) || since.After(time.Now()) {
		t.Errorf("shown to hold since %v, want it between %v and now", since, begun)
	}
	within(t, "a claim that queues", func(ctx context.Context) error { _, err := two.Acquire(ctx, next); return err })
	if r, err := one.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
		t.Fatalf("renew: %v, lost %v", err, r.Lost)
	}
	if at := holds(first); !at.Equal(since) {
		t.Errorf("shown to hold since %v, and after a renewal since %v", since, at)
	}
	begun = now()
	within(t, "a release", func(ctx context.Context) error { _, err := one.Release(ctx, first); return err })
	within(t, "the waiter", func(ctx context.Context) error { _, err := acquire(ctx, two, next); return err })
	if since = holds(next); since.Before(begun) || since.After(time.Now()) {
		t.Errorf("after a wait shown to hold since %v, want it between %v and now", since, begun)
	}
	ahead := strconv.FormatInt(time.Now().Add(time.Hour).UnixMicro()/64*64, 10)
	for _, s := range set {
		s.MustDo(t, "SET", "il:{since}:qfence:since", ahead)
	}
	if since = holds(next); !since.IsZero() {
		t.Errorf("with a counter that is an hour ahead shown to hold since %v, want that nobody knows", since)
	}
}

// An answer that comes when a look at all masters is over is not looked at. So its master is one of
// which nothing is known, where any claim may stand, and none of which it is known that nobody
// stands there.
func TestAnAnswerThatIsNotLookedAtSaysNothing(t *testing.T) {
	t.Parallel()
	for range 200 { // whoever asks may look at once
		if said, seen := redlock.Overtaken(); said != 2 || seen != 2 {
			t.Fatalf("of %d masters it is said that they have answered, and %d answers were looked at, want 2 of each", said, seen)
		}
	}
}
