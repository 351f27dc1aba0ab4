package redlock_test

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// looks counts how often a master is asked who it is.
func looks(w *wire.Wire) *atomic.Int32 {
	var n atomic.Int32
	w.Filter(wire.Requests, func(request []byte) bool {
		if bytes.Contains(request, []byte("INFO")) {
			n.Add(1)
		}
		return true
	})
	return &n
}

// A master does not answer when all are asked who they are. It has lost nothing, so what it gave to
// a claim that waits counts.
func TestAMasterThatIsNotHeardOfHasForgottenNothing(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	d, wires := wired(t, set, endless)
	s := session(t, d, endlessTTL)
	occupy(t, "missed", set[1:]...)
	c := mutex("missed", true)
	if g, err := s.Acquire(t.Context(), c); g.Held || err != nil {
		t.Fatalf("with one master of three: %+v, %v", g, err)
	}
	until(t, 30*time.Second, "given to the claim", func() bool { return ours(t, set[0], "missed") })

	asked := looks(wires[1])
	heal := wires[0].Stall(wire.Replies)
	defer heal()
	set[2].MustDo(t, "DEL", "il:{redlock}:vote")
	try := mutex("something else", false)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // it has one master at most
	_, _ = s.Acquire(ctx, try)
	cancel()
	until(t, 30*time.Second, "looked at without the first master", func() bool { return asked.Load() >= 3 })
	heal()
	until(t, 30*time.Second, "a vote of the third master", func() bool { return votes(t, set[2]) })

	set[1].MustDo(t, "DEL", "missed")
	within(t, "a claim that two of three masters are given to", func(ctx context.Context) error {
		_, err := acquire(ctx, s, c)
		return err
	})
}

// votes reports whether the master has a vote.
func votes(t *testing.T, s *servertest.Server) bool {
	t.Helper()
	return s.MustDo(t, "EXISTS", "il:{redlock}:vote") == "1"
}

// A master is slow, so that a look at all masters ends without it, and another one waits for its
// vote. The slow one has its own all the same: a look that waits longer tells it the place of the
// other.
func TestASlowMasterKeepsItsVote(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	d, wires := wired(t, set, "")
	s := session(t, d, time.Minute)
	wires[0].Delay(100*time.Millisecond, 0)
	if err := set[2].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	granted := 0
	until(t, 30*time.Second, "granted five times in a row by two masters, of which one is slow", func() bool {
		try := mutex("slow", false)
		g, err := s.Acquire(t.Context(), try)
		_, _ = s.Release(t.Context(), try)
		if granted++; err != nil || !g.Held || votes(t, set[2]) {
			granted = 0
		}
		return granted == 5
	})
}

// A slow master that keeps everything restarts. The others answer long before it does, so looks
// wait longer until it is heard of.
func TestASlowMasterThatRestartsIsHeardOf(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3, redistest.Durable...)
	d, wires := wired(t, set, "")
	s := session(t, d, time.Minute)
	wires[0].Delay(30*time.Millisecond, 0)
	if err := set[0].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, 30*time.Second, "given to a claim by the slow master", func() bool {
		try := mutex("heard of", false)
		defer func() { _, _ = s.Release(t.Context(), try) }()
		g, err := s.Acquire(t.Context(), try)
		return err == nil && g.Held && ours(t, set[0], "heard of")
	})
}
