package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
)

// Claims that wait, and one that holds, when the master dies: whether the replica had heard of them
// or not, everybody is served, and the tokens go on growing. With a TTL that is longer than the
// test may take, the handoffs afterwards can only come by messages over subscriptions that were
// made again.
func TestSentinel_WaitersGoOnAfterAFailover(t *testing.T) {
	if testing.Short() {
		t.Skip("failovers that take their time: make proof")
	}
	for what, lost := range map[string]bool{"nothing is lost": false, "the last writes are lost": true} {
		t.Run(what, func(t *testing.T) {
			s := servertest.Sentinel(t)
			holder := open(t, s.URL(), ttl(6*time.Second))
			var waiters []*interlock.Client
			for range 3 {
				waiters = append(waiters, open(t, s.URL(), ttl(6*time.Second)))
			}
			top := uint64(0)
			for _, c := range append(waiters, holder) { // who has held it knows its way
				l := hold(t, c.Mutex("m"))
				top = grows(t, "before the failover", top, l)
				release(t, l)
			}
			if lost {
				redistest.Isolate(t, s)
			}
			lease := hold(t, holder.Mutex("m"))
			top = grows(t, "before the failover", top, lease)
			var served []<-chan grant
			for i, c := range waiters {
				served = append(served, asking(t.Context(), c.Mutex("m")))
				waitsFor(t, s.Master, "m", i+1)
			}
			if !lost {
				waitsFor(t, s.Replica, "m", len(waiters))
			}
			if err := s.Failover(t.Context()); err != nil {
				t.Fatal(err)
			}
			if lost {
				told(t, lease)
			} else if err := lease.Err(); err != nil {
				t.Errorf("the holder: %v; want it to hold on: the replica knew of it", err)
			} else if err := lease.Release(); err != nil && !errors.Is(err, interlock.ErrUncertain) {
				t.Error(err) // the client may not yet know of the new master, and goes on in the background
			}
			for range waiters {
				g, i := firstServed(t, served)
				top = grows(t, "after the failover", top, g.Lease)
				release(t, g.Lease)
				served = append(served[:i:i], served[i+1:]...)
			}
			crowd := newCrowd(t, "m", waiters...)
			crowd.everybody(2 * len(waiters))
			crowd.turns(100)
			crowd.stop()
			crowd.exclusive(5 * time.Second)
			if len(crowd.tokens) == 0 || crowd.tokens[top] {
				t.Errorf("token %d was granted before the failover and after it", top)
			}
		})
	}
}

// firstServed waits for the first of several grants.
func firstServed(t *testing.T, served []<-chan grant) (g grant, which int) {
	t.Helper()
	eventually(t, "somebody who waits is served", func() bool {
		for i, c := range served {
			select {
			case g = <-c:
				which = i
				if g.err != nil {
					t.Fatal(g.err)
				}
				return true
			default:
			}
		}
		return false
	})
	return g, which
}

// A failover that an operator orders, or that Sentinels decide on while a master lives, under load:
// nobody who waits is told of an error, and everybody goes on.
func TestSentinel_FailoverUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("a contest: make proof")
	}
	s := servertest.Sentinel(t)
	var clients []*interlock.Client
	for range 3 {
		clients = append(clients, open(t, s.URL(), ttl(6*time.Second)))
	}
	crowd := newCrowd(t, "m", clients...)
	crowd.everybody(6)
	crowd.turns(5)
	before := crowd.top()
	s.Nodes[0].MustDo(t, "SENTINEL", "FAILOVER", "mymaster")
	eventually(t, "the replica is master", func() bool {
		return s.Nodes[0].MustDo(t, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster") == fmt.Sprintf("127.0.0.1\n%d", s.Replica.Port())
	})
	crowd.turns(20)
	crowd.stop()
	if crowd.top() <= before {
		t.Errorf("the highest token is %d after the failover and was %d before", crowd.top(), before)
	}
}

// A former master that the Sentinels cannot reach keeps the connections of clients that can. A
// subscription there hears nothing of the new one, so it ends with the client's move.
func TestSentinel_SubscriptionLeavesTheFormerMaster(t *testing.T) {
	s := servertest.Sentinel(t)
	b := redistest.NewProxies(t)
	conn := redistest.Connect(t, b, s.URL())
	sub, err := conn.Subscribe(t.Context(), "m", "news", func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	// The wire to the former master stays up with nothing behind it, as a network that lost its
	// other end.
	heal := b.To(s.Master.Addr()).Stall(wire.Both)
	t.Cleanup(heal)
	if err := s.Failover(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), redisconn.DefaultTimeout)
	defer cancel()
	select {
	case <-sub.Done:
	case <-ctx.Done():
		t.Error("the subscription stays at a master that is none any more")
	}
	again, err := conn.Subscribe(t.Context(), "m", "news", func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if n := s.Master.MustDo(t, "PUBLISH", "news", "x"); n != "1" {
		t.Errorf("the new master counts %s subscribers; want 1", n)
	}
}

// Whoever opens while the master is dead has a client when there is another one. One try says which
// master it was, and a name that the Sentinels do not know is told at once.
func TestSentinel_OpenWaitsForAnElection(t *testing.T) {
	if testing.Short() {
		t.Skip("an election that takes its time: make proof")
	}
	t.Parallel()
	s := servertest.Sentinel(t)
	if _, err := interlock.Open(t.Context(), s.URL()+"s", &interlock.Options{Patience: time.Hour}); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "know no master of this name") {
		t.Errorf("a master that nobody knows: %v, want it refused", err)
	}
	dead := s.Master.Addr()
	if err := s.Master.Kill(); err != nil {
		t.Fatal(err)
	}
	d, err := driver.OpenURL(t.Context(), s.URL())
	if err == nil {
		_ = d.Close(t.Context())
	}
	if !errors.Is(err, driver.ErrNotSent) || !strings.Contains(err.Error(), "the master "+dead+" that "+s.Nodes[0].Addr()) {
		t.Errorf("opened while the master is dead: %v, want that it is %s", err, dead)
	}
	client := open(t, s.URL(), &interlock.Options{Patience: ample})
	release(t, hold(t, client.Mutex("m")))
}
