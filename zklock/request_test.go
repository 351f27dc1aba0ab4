package zklock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
)

// A node whose answer is lost is found, whether the request was carried out or not.
func TestZ02_TheAnswerIsLost(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, l, _ := opened(t, server)
	hand := byHand(t, server)
	storetest.Asks(t, s, storetest.Mutex("warm"), true)
	for i, way := range []wire.Direction{wire.Replies, wire.Requests, wire.Replies, wire.Requests} {
		c := storetest.Mutex("lost")
		heal := l.Stall(way)
		answered := make(chan error, 1)
		go func() {
			g, err := s.Acquire(within(t), c)
			if err == nil && !g.Held {
				err = errors.New("not held")
			}
			answered <- err
		}()
		storetest.Until(t, "what is lost", func() bool { return l.Count().Requests.Held+l.Count().Replies.Held > 0 })
		l.Cut()
		heal()
		err := <-answered
		if in := children(t, hand, "/lost"); len(in) != 1 {
			t.Fatalf("round %d: %d nodes stand in line for one claim", i, len(in))
		}
		if err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		storetest.Leaves(t, s, c, true)
	}
}

// A node of another session is not ours, whatever it is called.
func TestZ03_ANodeOfAnotherSession(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	first, _, _, _ := opened(t, server)
	second, _, l, _ := opened(t, server)
	c := storetest.Mutex("whose")
	storetest.Asks(t, first, c, true)
	storetest.Asks(t, second, storetest.Mutex("warm"), true)
	heal := l.Stall(wire.Requests)
	answered := make(chan error, 1)
	go func() {
		g, err := second.Acquire(within(t), c)
		if err == nil && g.Held {
			err = errors.New("a node of another session is taken for ours")
		}
		answered <- err
	}()
	storetest.Until(t, "the request is held", func() bool { return l.Count().Requests.Held > 0 })
	l.Cut()
	heal()
	if err := <-answered; !errors.Is(err, driver.ErrGone) {
		t.Errorf("%v; want that the claim is gone", err)
	}
}

// Waits and Acquires that end at any moment leave a claim that can be released, and nothing after
// that.
func TestZ09_CancelledAtAnyMoment(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, _, _ := opened(t, server)
	hand := byHand(t, server)
	holds := storetest.Mutex("cancelled")
	storetest.Asks(t, s, holds, true)
	var all sync.WaitGroup
	for range 60 {
		all.Go(func() {
			c := storetest.Mutex("cancelled")
			c.Queue = rand.IntN(3) > 0
			ctx, cancel := context.WithTimeout(t.Context(), rand.N(20*time.Millisecond))
			defer cancel()
			if _, err := s.Acquire(ctx, c); err == nil && c.Queue {
				_, _ = s.Wait(ctx, c) // whatever became of it
			}
			if _, err := s.Release(within(t), c); err != nil {
				t.Errorf("Release: %v", err)
			}
		})
	}
	all.Wait()
	if in := children(t, hand, "/cancelled"); len(in) != 1 {
		t.Errorf("%d nodes stand there, want that of the holder", len(in))
	}
	storetest.Leaves(t, s, holds, true)
}
