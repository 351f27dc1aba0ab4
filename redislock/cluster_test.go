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
	"github.com/interlock-go/interlock/internal/redistest"
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

// A thousand handoffs between two processes that wait at all three masters, so that each has a
// subscription at every one. A message reaches subscribers through any master, and is counted at
// one: nobody is passed over, and nobody is told but who holds. The TTL is longer than the test may
// take, so a claim that was passed over would wait for good.
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
		value := c.Owner(c.Slot(name)).MustDo(t, "GET", name)
		if !strings.HasPrefix(value, "il1:"+holders[name].ID) {
			t.Errorf("at %s stands %q, not the last who was granted it", name, value)
		}
	}
	for i, node := range c.Nodes {
		if n := len(strings.Fields(node.MustDo(t, "PUBSUB", "CHANNELS", "il:push:*"))); n != 2 {
			t.Errorf("node %d has %d subscriptions; want one of each process", i, n)
		}
	}
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
	c := servertest.RedisCluster(t, 1, 0, redistest.Durable...)
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
