package redisconn_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
)

// spread are keys in slots of every master of a small cluster.
var spread = []string{"a", "b", "c", "d", "e", "f", "{}x", "a}b"}

// works sees that commands, subscriptions and visits reach the masters under the names that the
// cluster gives them.
func works(t *testing.T, conn redisconn.Conn, c *servertest.Cluster, named func(*servertest.Server) string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, key := range spread {
		owner := c.Owner(c.Slot(key))
		if v, err := conn.Do(ctx, redisconn.Command{Words: []string{"SET", key, "x"}, First: 1, Keys: 1}); err != nil || v != "OK" {
			t.Errorf("SET %s: %v, %v", key, v, err)
		}
		heard := make(chan string, 2*len(spread)) // a Cluster tells all nodes, so what was told for another key may come late
		s, err := conn.Subscribe(ctx, key, "news", func(payload string) { heard <- payload })
		if err != nil {
			t.Fatalf("subscribe at the master of %s: %v", key, err)
		}
		if s.Node != named(owner) || conn.Node(key) != named(owner) {
			t.Errorf("%s is at %s, and subscribed to at %s; want %s", key, conn.Node(key), s.Node, named(owner))
		}
		if n, err := owner.Do("PUBLISH", "news", "hello"); err != nil || n != "1" {
			t.Errorf("the master of %s counts %s subscribers, %v; want 1", key, n, err)
		}
		select {
		case <-heard:
		case <-ctx.Done():
			t.Fatal("a message is not heard")
		}
		s.Close()
		<-s.Done
	}
	visited := map[string]bool{}
	if err := conn.EachMaster(ctx, func(do redisconn.DoFunc) error {
		v, err := do(ctx, "CLUSTER", "MYID")
		id, _ := v.(string)
		visited[id] = true
		return err
	}); err != nil || len(visited) != len(c.Nodes) {
		t.Errorf("visited %d masters, %v; want %d", len(visited), err, len(c.Nodes))
	}
}

func openCluster(t *testing.T, c redisconn.Config) redisconn.Conn {
	t.Helper()
	c.Cluster = true
	conn, err := redisconn.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// Nodes that announce addresses which only a proxy can reach are known by these, whichever of them
// answers.
func TestCluster_AnnouncedAddresses(t *testing.T) {
	const outside = "redis.example"
	c := servertest.RedisCluster(t, 2, 0)
	for _, node := range c.Nodes {
		if _, err := node.Do("CONFIG", "SET", "cluster-announce-hostname", outside, "cluster-preferred-endpoint-type", "hostname"); err != nil {
			t.Fatal(err)
		}
	}
	for _, node := range c.Nodes {
		waitUntil(t, "every node announces the address", func() bool {
			v, err := node.Do("CLUSTER", "SLOTS")
			return err == nil && strings.Count(v, outside) == len(c.Nodes)
		})
	}
	conn := openCluster(t, redisconn.Config{
		Addrs: []string{c.Nodes[0].Addr()},
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, strings.Replace(addr, outside, "127.0.0.1", 1))
		},
	})
	works(t, conn, c, func(s *servertest.Server) string { return strings.Replace(s.Addr(), "127.0.0.1", outside, 1) })
}

func waitUntil(t *testing.T, what string, look func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(30 * time.Second); !look(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// A program's own client may speak the old protocol, in which answers look different and
// subscriptions have a connection that is made another way.
func TestCluster_OwnClient(t *testing.T) {
	c := servertest.RedisCluster(t, 2, 0)
	addr := func(s *servertest.Server) string { return s.Addr() }
	for what, old := range map[string]bool{"RESP3": false, "RESP2": true} {
		t.Run(what, func(t *testing.T) {
			client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{c.Nodes[1].Addr()}, DisableCache: true, AlwaysRESP2: old})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(client.Close)
			works(t, redisconn.Rueidis(client), c, addr)
		})
	}
}

// Who asks where a slot is hears the last that is known, and the news soon after somebody doubts
// it.
func TestCluster_Moves(t *testing.T) {
	c := servertest.RedisCluster(t, 2, 0)
	conn := openCluster(t, redisconn.Config{Addrs: []string{c.Nodes[0].Addr()}})
	waitUntil(t, "the first answer", func() bool { return conn.Node("a") == c.Owner(c.Slot("a")).Addr() })
	from, to := c.Nodes[0], c.Nodes[1]
	if c.Owner(c.Slot("a")) == to {
		from, to = to, from
	}
	if err := c.Move(t.Context(), c.Slot("a"), to); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the news of a slot that has moved", func() bool {
		conn.Doubt()
		select {
		case <-conn.Moves():
			return true
		default:
			return false
		}
	})
	if got := conn.Node("a"); got != to.Addr() {
		t.Errorf("a is at %s; want %s and not %s", got, to.Addr(), from.Addr())
	}
}
