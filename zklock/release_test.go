package zklock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
)

// Whatever ends an Acquire, its Release leaves nothing, also when the request is still under way.
func TestZ05_WhoGivesUpLeavesNothing(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, l, _ := opened(t, server)
	hand := byHand(t, server)
	storetest.Asks(t, s, storetest.Mutex("warm"), true)
	for i, way := range []wire.Direction{wire.Replies, wire.Requests} {
		c := storetest.Mutex("given-up")
		heal := l.Stall(way)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := s.Acquire(ctx, c); err == nil {
			t.Fatal("answered over a wire that is stalled")
		}
		cancel()
		released := make(chan error, 1)
		go func() {
			_, err := s.Release(within(t), c)
			released <- err
		}()
		heal()
		if err := <-released; err != nil {
			t.Fatal(err)
		}
		if in := children(t, hand, "/given-up"); len(in) != 0 {
			t.Fatalf("round %d: %d nodes stand there for nobody", i, len(in))
		}
	}
}

// A Release that was lost, and that nobody repeats, is made up for by the next renewal.
func TestZ06_AReleaseIsLost(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, l, _ := opened(t, server)
	other, _, _, _ := opened(t, server)
	mine, next := storetest.Mutex("released"), storetest.Mutex("released")
	storetest.Asks(t, s, mine, true)
	storetest.Asks(t, other, next, false)
	heal := l.Stall(wire.Requests)
	failed := make(chan error, 1)
	go func() {
		_, err := s.Release(within(t), mine)
		failed <- err
	}()
	storetest.Until(t, "the request is held", func() bool { return l.Count().Requests.Held > 0 })
	l.Cut()
	heal()
	if err := <-failed; err == nil || errors.Is(err, driver.ErrSessionLost) {
		t.Fatalf("a Release without an answer: %v", err)
	}
	renews(t, s)
	storetest.Awaits(t, other, next)
}
