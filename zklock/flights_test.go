package zklock_test

import (
	"sync"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
)

// What is free is taken by two requests in one flight, and left by one; a wait costs one flight
// more, and being let in one request.
func TestFlights(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, l, _ := opened(t, server)
	other, _, behind, _ := opened(t, server)
	storetest.Asks(t, other, storetest.Mutex("warm"), true)
	spent := func(what string, of *line, flights, requests int64, f func()) {
		t.Helper()
		before, packets := of.calls.Load(), of.Count().Requests.Packets
		f()
		if got, sent := of.calls.Load()-before, of.Count().Requests.Packets-packets; got != requests || sent != flights {
			t.Errorf("%s costs %d requests in %d flights, want %d in %d", what, got, sent, requests, flights)
		}
	}
	mine, waits, again := storetest.Mutex("flights"), storetest.Mutex("flights"), storetest.Mutex("flights")
	spent("a name that is new to the servers", l, 2, 5, func() { storetest.Asks(t, s, mine, true) })
	spent("a release", l, 1, 1, func() { storetest.Leaves(t, s, mine, true) })
	mine = storetest.Mutex("flights")
	spent("what is free", l, 1, 2, func() { storetest.Asks(t, s, mine, true) })
	spent("to come and wait", behind, 2, 4, func() { storetest.Asks(t, other, waits, false) })
	gives, later := storetest.Mutex("flights"), storetest.Mutex("flights")
	storetest.Asks(t, other, gives, false)
	storetest.Asks(t, other, later, false)
	spent("to give up", behind, 1, 1, func() { storetest.Leaves(t, other, gives, false) })
	spent("a release", l, 1, 1, func() { storetest.Leaves(t, s, mine, true) })
	spent("to be let in", behind, 1, 1, func() { storetest.Awaits(t, other, waits) })
	spent("to give up behind another holder", behind, 2, 3, func() { storetest.Leaves(t, other, later, false) })
	spent("to leave and come again", behind, 2, 3, func() {
		g, was, err := other.(driver.Requeuer).Requeue(within(t), waits, again)
		if err != nil || !was || !g.Held || g.Fence == 0 {
			t.Errorf("Requeue: %+v, %v, %v", g, was, err)
		}
	})
	gives = storetest.Mutex("flights")
	storetest.Asks(t, s, gives, false)
	storetest.Leaves(t, other, again, true)
	storetest.Leaves(t, s, gives, true) // whether it has heard of it or not
}

// Of two hundred who wait a release wakes one.
func TestAReleaseWakesOne(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, _, _ := opened(t, server)
	holds := storetest.Mutex("crowd")
	storetest.Asks(t, s, holds, true)
	const crowd = 200
	other, _, l, _ := opened(t, server)
	var all []driver.Claim
	for range crowd {
		c := storetest.Mutex("crowd")
		storetest.Asks(t, other, c, false)
		all = append(all, c)
	}
	var waits sync.WaitGroup
	for _, c := range all {
		waits.Go(func() { storetest.Awaits(t, other, c); storetest.Leaves(t, other, c, true) })
	}
	before := l.calls.Load()
	storetest.Leaves(t, s, holds, true)
	waits.Wait()
	if got := l.calls.Load() - before; got != 2*crowd { // a look and a release each
		t.Errorf("%d handoffs cost %d requests, want %d", crowd, got, 2*crowd)
	}
}
