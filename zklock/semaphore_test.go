package zklock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
	"github.com/interlock-go/interlock/internal/zk"
)

// What a semaphore has free is taken by two flights: into the line, and out of it with a lease for
// each permit. One that waits is let in by one look and one request, and of many who wait a release
// wakes one.
func TestFlightsOfASemaphore(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, l, _ := opened(t, server)
	hand := byHand(t, server)
	warm := permit("seats", 1, 3)
	storetest.Asks(t, s, warm, true)
	before, flights := l.calls.Load(), l.Count().Requests.Packets
	mine := permit("seats", 2, 3)
	storetest.Asks(t, s, mine, true)
	if calls, sent := l.calls.Load()-before, l.Count().Requests.Packets-flights; calls != 5 || sent != 2 {
		t.Errorf("two permits cost %d requests in %d flights, want 5 in 2", calls, sent)
	}
	if leases := children(t, hand, "/seats/leases"); len(leases) != 3 || len(children(t, hand, "/seats/locks")) != 0 {
		t.Errorf("three permits are the leases %q", leases)
	}
	const crowd = 50
	other, _, behind, _ := opened(t, server)
	var all []driver.Claim
	for range crowd {
		c := permit("seats", 3, 3)
		storetest.Asks(t, other, c, false)
		all = append(all, c)
	}
	before = behind.calls.Load()
	storetest.Leaves(t, s, warm, true)
	storetest.Leaves(t, s, mine, true)
	for _, c := range all {
		storetest.Awaits(t, other, c)
		storetest.Leaves(t, other, c, true)
	}
	// A look, the leases, and the release; who comes to be the first looks, and has the next lease
	// told. The first was told twice.
	if calls := behind.calls.Load() - before; calls > 9*crowd+10 {
		t.Errorf("%d handoffs cost %d requests", crowd, calls)
	}
}

// Who was let in under a limit of his own stands where he stood, also when nobody waits any more
// and the numbers begin anew.
func TestTheNumbersOfASemaphoreBeginAnew(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, _, _ := opened(t, server)
	hand := byHand(t, server)
	for range 3 {
		c := permit("anew", 1, 1)
		storetest.Asks(t, s, c, true)
		storetest.Leaves(t, s, c, true)
	}
	mine, next := permit("anew", 1, 1), permit("anew", 1, 1)
	storetest.Asks(t, s, mine, true)
	do(t, hand, zk.Delete("/anew/locks", -1)) // as the servers do, of a container
	storetest.Asks(t, s, next, false)
	do(t, hand, zk.Create("/anew/leases/_c_0123-lease-", nil, zk.EphemeralSequential, zk.Anyone)) // Curator's
	storetest.Leaves(t, s, mine, true)
	storetest.Asks(t, s, next, false)
	for _, lease := range children(t, hand, "/anew/leases") {
		do(t, hand, zk.Delete("/anew/leases/"+lease, -1))
	}
	storetest.Awaits(t, s, next)
	storetest.Leaves(t, s, next, true)
}

// A lease whose answer is lost is found, whether the request was carried out or not, and one that
// is deleted is a loss.
func TestALeaseIsLost(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, l, _ := opened(t, server)
	other, _, _, _ := opened(t, server)
	hand := byHand(t, server)
	for i, way := range []wire.Direction{wire.Replies, wire.Requests, wire.Replies, wire.Requests} {
		holds, c := permit("seat", 1, 1), permit("seat", 1, 1)
		storetest.Asks(t, other, holds, true)
		storetest.Asks(t, s, c, false)
		heal := l.Stall(way) // what tells it, or the look, or the leases
		storetest.Leaves(t, other, holds, true)
		if way == wire.Requests {
			storetest.Until(t, "a request is held", func() bool { return l.Count().Requests.Held > 0 })
		}
		l.Cut()
		heal()
		storetest.Awaits(t, s, c)
		if leases := children(t, hand, "/seat/leases"); len(leases) != 1 {
			t.Fatalf("round %d: one permit is the leases %q", i, leases)
		}
		storetest.Leaves(t, s, c, true)
	}
	mine := permit("seats", 2, 2)
	storetest.Asks(t, s, mine, true)
	renews(t, s)
	do(t, hand, zk.Delete("/seats/leases/"+children(t, hand, "/seats/leases")[1], -1))
	if _, err := s.Acquire(within(t), mine); !errors.Is(err, driver.ErrGone) {
		t.Errorf("one of two leases is deleted: %v", err)
	}
	renews(t, s, mine)
	storetest.Leaves(t, s, mine, false)
	if leases := children(t, hand, "/seats/leases"); len(leases) != 0 {
		t.Errorf("there are still %q", leases)
	}
}

// A permit that is let in is taken although nobody waits for it: those behind it would not be told.
func TestWhoDoesNotWaitIsInNobodysWay(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, _, _ := opened(t, server)
	other, _, _, _ := opened(t, server)
	holds, idle, waits := permit("idle", 2, 2), permit("idle", 1, 2), permit("idle", 1, 2)
	storetest.Asks(t, s, holds, true)
	storetest.Asks(t, s, idle, false)
	storetest.Asks(t, other, waits, false)
	storetest.Leaves(t, s, holds, true)
	storetest.Awaits(t, other, waits)
	storetest.Asks(t, s, idle, true)
}

// A permit that is refused, since its name is a lock, leaves nothing that the servers would never
// remove: they keep a container that never had a child.
func TestARefusedPermitLeavesNothing(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t, "-Dznode.container.checkIntervalMs=50")
	s, _, _, _ := opened(t, server)
	hand := byHand(t, server)
	mine := storetest.Mutex("kind")
	storetest.Asks(t, s, mine, true)
	_, err := s.Acquire(within(t), permit("kind", 1, 2))
	refused(t, err, "has a mutex claim")
	storetest.Leaves(t, s, mine, true)
	storetest.Until(t, "the lock's node goes", func() bool { return len(children(t, hand, "/")) == 1 })
}

// Semaphores of more than a thousand are one node for each claim.
func TestALargeSemaphore(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, d, _, _ := opened(t, server)
	hand := byHand(t, server)
	most, few, rest := permit("large", 900, 1001), permit("large", 102, 1001), permit("large", 101, 1001)
	storetest.Asks(t, s, most, true)
	few.Queue = false
	storetest.Asks(t, s, few, false)
	storetest.Asks(t, s, rest, true)
	if leases := children(t, hand, "/large/leases"); len(leases) != 2 || !slices.ContainsFunc(leases, func(l string) bool { return strings.Contains(l, "-900-1001-") }) {
		t.Errorf("the leases are %q", leases)
	}
	line, err := d.(driver.Inspector).Line(context.Background(), "large")
	if err != nil || len(line.Claims) != 2 || line.Claims[0].Weight != 900 || line.Claims[0].Limit != 1001 || line.Claims[0].Kind != driver.Permit || line.Claims[0].Since.IsZero() {
		t.Errorf("the line is %+v, %v", line, err)
	}
}

// The leases of a claim are made by one request, which a server takes up to a size: what is beyond
// it is refused before it comes into line.
func TestSoManyLeasesAtOnce(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, l, _ := opened(t, server)
	most := permit(strings.Repeat("n", 890), 1000, 1000)
	storetest.Asks(t, s, most, true)
	storetest.Leaves(t, s, most, true)
	before := l.calls.Load()
	_, err := s.Acquire(within(t), permit(strings.Repeat("n", 910), 1000, 1000))
	refused(t, err, "want fewer at once or a shorter name")
	if sent := l.calls.Load() - before; sent != 0 {
		t.Errorf("%d requests were sent of what is refused", sent)
	}
	storetest.Asks(t, s, permit(strings.Repeat("n", 910), 1000, 1001), true)
}
