package redislock_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redislock"
)

// at returns a name in a slot that the i-th of three masters has from the start.
func at(t *testing.T, c *servertest.Cluster, i int, what string) string {
	t.Helper()
	for n := range 1000 {
		name := what + strconv.Itoa(n)
		if slot := c.Slot(name); slot >= i*redisconn.Slots/3 && slot < (i+1)*redisconn.Slots/3 {
			return name
		}
	}
	t.Fatal("no name lies at the node")
	return ""
}

// onCluster opens the store as another process would.
func onCluster(t *testing.T, c *servertest.Cluster, o *redislock.Options) (*redislock.Driver, error) {
	t.Helper()
	var config redisconn.Config
	for _, node := range c.Nodes {
		config.Addrs = append(config.Addrs, node.Addr())
	}
	config.Cluster = true
	conn, err := redisconn.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	d, err := redislock.New(t.Context(), conn, o)
	if err == nil {
		t.Cleanup(func() { _ = d.Close(context.Background()) })
	}
	return d, err
}

// A thousand handoffs between two processes that wait at all three masters, so that each has a subscription at every one.
// A message reaches subscribers through any master, and is counted at one: nobody is passed over, and nobody is told but
// who holds. The TTL is longer than the test may take, so a claim that was passed over would wait for good.
func TestCluster_ThousandHandoffs(t *testing.T) {
	c := servertest.RedisCluster(t, 3, 0)
	var sessions []driver.Session
	for range 2 {
		d, err := onCluster(t, c, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: 10 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, s)
	}
	var names []string
	for i := range c.Nodes {
		names = append(names, at(t, c, i, "handoff"))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	claim := func(name string) driver.Claim {
		return driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Queue: true}
	}
	holders, tokens := map[string]driver.Claim{}, map[string]uint64{}
	for _, name := range names {
		holders[name] = claim(name)
		g, err := sessions[0].Acquire(ctx, holders[name])
		if err != nil || !g.Held {
			t.Fatalf("the first of %s: %+v, %v", name, g, err)
		}
		tokens[name] = g.Fence
	}
	for i := range 1000 {
		name := names[i%3]
		from, to := sessions[i/3%2], sessions[1-i/3%2]
		holds, next := holders[name], claim(name)
		if g, err := to.Acquire(ctx, next); err != nil || g.Held {
			t.Fatalf("handoff %d: the next is granted while another holds: %+v, %v", i, g, err)
		}
		if held, err := from.Release(ctx, holds); err != nil || !held {
			t.Fatalf("handoff %d: released %v, %v", i, held, err)
		}
		g, err := to.Wait(ctx, next)
		for err == nil && !g.Held {
			g, err = to.Wait(ctx, next)
		}
		switch {
		case errors.Is(err, driver.ErrGone):
			t.Fatalf("handoff %d: passed over", i)
		case err != nil:
			t.Fatalf("handoff %d: %v", i, err)
		case g.Fence < tokens[name]+driver.Stride:
			t.Fatalf("handoff %d: token %d after %d", i, g.Fence, tokens[name])
		}
		holders[name], tokens[name] = next, g.Fence
	}
	for _, name := range names {
		value := do(t, c.Owner(c.Slot(name)), "GET", name)
		if !strings.HasPrefix(value, "il1:"+holders[name].ID) {
			t.Errorf("at %s stands %q, not the last who was granted it", name, value)
		}
	}
	for i, node := range c.Nodes {
		if n := len(strings.Fields(do(t, node, "PUBSUB", "CHANNELS", "il:push:*"))); n != 2 {
			t.Errorf("node %d has %d subscriptions; want one of each process", i, n)
		}
	}
}

// A slot moves from master to master while six goroutines of three processes lock and unlock a name in it: nobody gets an
// error, no two hold, and nobody waits longer than the TTL.
func TestCluster_SlotMovesUnderLoad(t *testing.T) {
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

// A slot moves while its claims sleep: the holder's renewals and its release find it, and who waits is served within a TTL
// although its subscription is at the former master.
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
	if took := time.Since(started); took > 6*time.Second {
		t.Errorf("the last was served after %v; want it within the TTL", took)
	}
}

// A slot stays half moved for longer than leases last: those who hold names in it keep them, one by one, and who locks a
// name there waits and is told of nothing.
func TestCluster_SlotStaysHalfMoved(t *testing.T) {
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
	do(t, to, "CLUSTER", "SETSLOT", number, "IMPORTING", do(t, from, "CLUSTER", "MYID"))
	do(t, from, "CLUSTER", "SETSLOT", number, "MIGRATING", do(t, to, "CLUSTER", "MYID"))
	do(t, from, "MIGRATE", "127.0.0.1", strconv.Itoa(to.Port()), names[0], "0", "5000")
	waits := asking(t.Context(), open(t, c.URL(), ttl(1500*time.Millisecond)).Mutex("{half}d"))
	pause := time.NewTimer(4 * time.Second) // of leases that last 1.5 s
	select {
	case <-leases[0].Context().Done():
	case <-leases[1].Context().Done():
	case <-leases[2].Context().Done():
	case <-pause.C:
	}
	for i, l := range leases {
		if err := l.Err(); err != nil {
			t.Errorf("the holder of %s: %v", names[i], err)
		}
	}
	if err := c.Move(t.Context(), slot, to); err != nil {
		t.Fatal(err)
	}
	release(t, leases...)
	release(t, get(t, waits).Lease)
}

// A master dies and its replica is promoted, or an operator has them change places, so that subscriptions at the former
// master stay up. Who waits is served within a TTL after it, and tokens grow.
func TestCluster_MasterIsReplaced(t *testing.T) {
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
				do(t, replica, "CLUSTER", "FAILOVER")
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

// One master answers nothing for longer than leases last. Only those who hold names there lose them.
func TestCluster_OneMasterStandsStill(t *testing.T) {
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
			t.Errorf("%s at a master that answers: %v", what, err)
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

// fieldOf is what a server says of its replication.
func fieldOf(t *testing.T, s *servertest.Server, field string) string {
	t.Helper()
	_, rest, _ := strings.Cut(do(t, s, "INFO", "replication"), field+":")
	value, _, _ := strings.Cut(rest, "\r")
	return value
}

// The operator's page sees and breaks locks at every master.
func TestCluster_InspectsEveryMaster(t *testing.T) {
	c := servertest.RedisCluster(t, 3, 0)
	d, err := onCluster(t, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := open(t, c.URL(), ttl(time.Minute))
	var names []string
	var leases []*interlock.Lease
	for i := range c.Nodes {
		name := at(t, c, i, "seen/")
		names = append(names, name)
		leases = append(leases, hold(t, client.Mutex(name)))
	}
	slices.Sort(names)
	lines, err := d.Lines(t.Context(), "seen/")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range lines {
		got = append(got, l.Name)
	}
	if !slices.Equal(got, names) {
		t.Fatalf("Lines: %q; want %q", got, names)
	}
	for _, l := range lines {
		changed := make(chan driver.Line, 10)
		ctx, cancel := context.WithTimeout(t.Context(), ample)
		go func() {
			for line, err := range d.Watch(ctx, l.Name) {
				if err != nil {
					break
				}
				changed <- line
			}
			close(changed)
		}()
		if first := <-changed; len(first.Claims) != 1 {
			t.Errorf("Watch of %s begins with %d claims; want 1", l.Name, len(first.Claims))
		}
		if err := d.Break(t.Context(), l.Name, l.Claims[0].PublicID, l.Claims[0].Fence, true); err != nil {
			t.Errorf("break %s: %v", l.Name, err)
		}
		if last := <-changed; len(last.Claims) != 0 {
			t.Errorf("Watch of %s goes on with %d claims after Break; want none", l.Name, len(last.Claims))
		}
		cancel()
		for range changed {
			continue
		}
	}
	for _, l := range leases {
		told(t, l)
		if err := l.Release(); !errors.Is(err, interlock.ErrLost) {
			t.Errorf("release of a broken lease: %v; want %v", err, interlock.ErrLost)
		}
	}
}

// What a failover can lose is said when the store is opened, and strictly it is not opened.
func TestCluster_WarnsOfFailovers(t *testing.T) {
	c := servertest.RedisCluster(t, 1, 0, durable...)
	var log bytes.Buffer
	if _, err := onCluster(t, c, &redislock.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "a failover can lose locks") {
		t.Errorf("the log says %q; want it to warn of failovers", log.String())
	}
	if _, err := onCluster(t, c, &redislock.Options{Strict: true}); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "a failover can lose locks") {
		t.Errorf("strictly: %v; want it refused with the reason", err)
	}
}
