package redislock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
)

// A master dies and its replica is promoted, or an operator has them change places, so that
// subscriptions at the former master stay up. Who waits is served within a TTL after it, and tokens
// grow.
func TestCluster_MasterIsReplaced(t *testing.T) {
	if testing.Short() {
		t.Skip("failovers that take their time: make proof")
	}
	c := servertest.RedisCluster(t, 3, 1)
	for master, how := range []string{"by an operator", "by its death"} {
		t.Run(how, func(t *testing.T) {
			name := at(t, c, master, "replaced")
			slot := c.Slot(name)
			var clients []*interlock.Client
			for range 3 {
				clients = append(clients, open(t, c.URL(), ttl(6*time.Second)))
			}
			elsewhere := hold(t, clients[0].Mutex(at(t, c, master+1, "other")))
			lease := hold(t, clients[0].Mutex(name))
			var served []<-chan grant
			for i, client := range clients[1:] {
				served = append(served, asking(t.Context(), client.Mutex(name)))
				waitsFor(t, c.Nodes[master], name, i+1)
			}
			replica := c.Nodes[master+3]
			eventually(t, "the replica has it all", func() bool {
				return fieldOf(t, replica, "slave_repl_offset") == fieldOf(t, c.Nodes[master], "master_repl_offset")
			})
			if how == "by its death" {
				if err := c.KillMaster(t.Context(), master); err != nil {
					t.Fatal(err)
				}
			} else {
				replica.MustDo(t, "CLUSTER", "FAILOVER")
				eventually(t, "the replica has the slots", func() bool { return c.Owner(slot) == replica })
			}
			started, top := time.Now(), lease.Fence()
			if err := lease.Release(); err != nil && !errors.Is(err, interlock.ErrUncertain) {
				t.Error(err)
			}
			for range served {
				g, i := firstServed(t, served)
				top = grows(t, "after the failover", top, g.Lease)
				served = append(served[:i:i], served[i+1:]...)
				release(t, g.Lease)
			}
			if took := time.Since(started); took > 9*time.Second {
				t.Errorf("the last was served after %v; want it within the TTL", took)
			}
			if err := elsewhere.Err(); err != nil {
				t.Errorf("a lock at another master: %v", err)
			}
			release(t, elsewhere)
			crowd := newCrowd(t, name, clients...)
			crowd.everybody(6)
			crowd.turns(20)
			crowd.stop()
			crowd.exclusive(6 * time.Second)
		})
	}
}

// fieldOf is what a server says of its replication.
func fieldOf(t *testing.T, s *servertest.Server, field string) string {
	t.Helper()
	_, rest, _ := strings.Cut(s.MustDo(t, "INFO", "replication"), field+":")
	value, _, _ := strings.Cut(rest, "\r")
	return value
}

// One master is gone. Whoever lists sees what stands at the others, and that something is missing.
func TestCluster_ListsWhatOtherMastersHave(t *testing.T) {
	t.Parallel()
	c := servertest.RedisCluster(t, 3, 0, "--cluster-require-full-coverage", "no")
	d, err := onCluster(t, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: age})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{at(t, c, 0, "listed"), at(t, c, 1, "listed")}
	for _, name := range append(want, at(t, c, 2, "listed")) {
		if g, err := s.Acquire(t.Context(), mutex(name)); err != nil || !g.Held {
			t.Fatalf("a free name: held %v, %v", g.Held, err)
		}
	}
	if err := c.Nodes[2].Kill(); err != nil {
		t.Fatal(err)
	}
	lines, err := d.Lines(t.Context(), "listed")
	if err == nil || !strings.Contains(err.Error(), "a master that does not answer") || !strings.Contains(err.Error(), c.Nodes[2].Addr()) {
		t.Errorf("error %v, want that %s does not answer", err, c.Nodes[2].Addr())
	}
	var got []string
	for _, l := range lines {
		got = append(got, l.Name)
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("listed are %q, want %q, which lie at the others", got, want)
	}
}

// One master answers nothing for longer than leases last. Only those who hold names there lose
// them.
func TestCluster_OneMasterStandsStill(t *testing.T) {
	if testing.Short() {
		t.Skip("a matter of time: make proof")
	}
	c := servertest.RedisCluster(t, 3, 0, "--cluster-require-full-coverage", "no")
	client := open(t, c.URL(), ttl(6*time.Second))
	lost := hold(t, client.Mutex(at(t, c, 0, "still")))
	kept := hold(t, client.Mutex(at(t, c, 1, "still")))
	shared := hold(t, reading{client.RWMutex(at(t, c, 2, "still"))})
	if err := c.Nodes[0].Pause(); err != nil {
		t.Fatal(err)
	}
	told(t, lost)
	pause := time.NewTimer(2 * 6 * time.Second)
	select {
	case <-kept.Context().Done():
	case <-shared.Context().Done():
	case <-pause.C:
	}
	for what, l := range map[string]*interlock.Lease{"a mutex": kept, "a reader": shared} {
		if err := l.Err(); err != nil {
			t.Errorf("%s at a master that answers: %v; want it to hold on", what, err)
		}
	}
	if err := c.Nodes[0].Resume(); err != nil {
		t.Fatal(err)
	}
	release(t, kept, shared)
}

// reading is a lock that readers take.
type reading struct{ *interlock.RWMutex }

func (r reading) Lock(ctx context.Context) (*interlock.Lease, error) { return r.RLock(ctx) }
