package redislock_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/servertest"
)

// A slot moves from master to master while six goroutines of three processes lock and unlock a name
// in it: nobody gets an error, no two hold, and nobody waits longer than the TTL.
func TestCluster_SlotMovesUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("a contest: make proof")
	}
	c := servertest.RedisCluster(t, 3, 0)
	const name = "moves"
	var clients []*interlock.Client
	for range 3 {
		clients = append(clients, open(t, c.URL(), ttl(6*time.Second)))
	}
	crowd := newCrowd(t, name, clients...)
	crowd.everybody(6)
	slot := c.Slot(name)
	for range 6 {
		owner := slices.Index(c.Nodes, c.Owner(slot))
		if err := c.Move(t.Context(), slot, c.Nodes[(owner+1)%3]); err != nil {
			t.Fatal(err)
		}
		crowd.turns(5)
	}
	crowd.stop()
	crowd.exclusive(6 * time.Second)
}

// A slot moves while its claims sleep: the holder's renewals and its release find it, and who waits
// is served within a TTL although its subscription is at the former master.
func TestCluster_SlotMovesWhileClaimsSleep(t *testing.T) {
	c := servertest.RedisCluster(t, 3, 0)
	const name = "sleeps"
	holder := open(t, c.URL(), ttl(6*time.Second))
	lease := hold(t, holder.Mutex(name))
	var served []<-chan grant
	for i := range 3 {
		served = append(served, asking(t.Context(), open(t, c.URL(), ttl(6*time.Second)).Mutex(name)))
		waitsFor(t, c.Owner(c.Slot(name)), name, i+1)
	}
	slot := c.Slot(name)
	owner := slices.Index(c.Nodes, c.Owner(slot))
	if err := c.Move(t.Context(), slot, c.Nodes[(owner+1)%3]); err != nil {
		t.Fatal(err)
	}
	started, top := time.Now(), lease.Fence()
	release(t, lease)
	for range 3 {
		g, i := firstServed(t, served)
		top = grows(t, "after the move", top, g.Lease)
		served = append(served[:i:i], served[i+1:]...)
		release(t, g.Lease)
	}
	if took := time.Since(started); took > 6*time.Second && !testing.Short() {
		t.Errorf("the last was served after %v; want it within the TTL", took)
	}
}

// A slot stays half moved for longer than leases last: those who hold names in it keep them, one by
// one, and who locks a name there waits for as long as it has patience, and is told of nothing.
func TestCluster_SlotStaysHalfMoved(t *testing.T) {
	if testing.Short() {
		t.Skip("a state that is left alone for seconds: make proof")
	}
	c := servertest.RedisCluster(t, 3, 0)
	client := open(t, c.URL(), ttl(1500*time.Millisecond))
	names := []string{"{half}a", "{half}b", "{half}c"}
	var leases []*interlock.Lease
	for _, name := range names {
		leases = append(leases, hold(t, client.Mutex(name)))
	}
	slot := c.Slot(names[0])
	from := c.Owner(slot)
	to := c.Nodes[(slices.Index(c.Nodes, from)+1)%3]
	number := strconv.Itoa(slot)
	to.MustDo(t, "CLUSTER", "SETSLOT", number, "IMPORTING", from.MustDo(t, "CLUSTER", "MYID"))
	from.MustDo(t, "CLUSTER", "SETSLOT", number, "MIGRATING", to.MustDo(t, "CLUSTER", "MYID"))
	from.MustDo(t, "MIGRATE", "127.0.0.1", strconv.Itoa(to.Port()), names[0], "0", "5000")
	patient := &interlock.Options{TTL: 1500 * time.Millisecond, Patience: ample}
	waits := asking(t.Context(), open(t, c.URL(), patient).Mutex("{half}d"))
	pause := time.NewTimer(4 * time.Second) // of leases that last 1.5 s
	select {
	case <-leases[0].Context().Done():
	case <-leases[1].Context().Done():
	case <-leases[2].Context().Done():
	case <-pause.C:
	}
	for i, l := range leases {
		if err := l.Err(); err != nil {
			t.Errorf("the holder of %s: %v; want it to hold on", names[i], err)
		}
	}
	if err := c.Move(t.Context(), slot, to); err != nil {
		t.Fatal(err)
	}
	release(t, leases...)
	release(t, get(t, waits).Lease)
}
