package goredis_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redisconn/goredis"
)

func words(w ...string) redisconn.Command { return redisconn.Command{Words: w} }

func keyed(w ...string) redisconn.Command { return redisconn.Command{Words: w, First: 1, Keys: 1} }

func connOf(t *testing.T, client redis.UniversalClient) redisconn.Conn {
	t.Helper()
	t.Cleanup(func() { _ = client.Close() })
	c, err := goredis.Conn(client)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestConn_RefusesOtherClients(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	defer ring.Close()
	if _, err := goredis.Conn(ring); err == nil || !strings.Contains(err.Error(), "*redis.ClusterClient") {
		t.Errorf("a ring: %v; want an error that says what would be right", err)
	}
}

// noted counts the requests over a wire that contain word, and cuts the connection instead of
// letting their answers come back.
func noted(t *testing.T, target, word string) (w *wire.Wire, seen *atomic.Int64) {
	t.Helper()
	w, seen = wire.New(t, target), new(atomic.Int64)
	w.Filter(wire.Requests, func(frame []byte) bool {
		if strings.Contains(string(frame), word) {
			seen.Add(1)
			go w.Cut()
			return false
		}
		return true
	})
	return w, seen
}

// A client repeats commands three times unless told otherwise, one for a Cluster whatever it is
// told. Those of locks go out once.
func TestConn_NeverRepeatsCommands(t *testing.T) {
	server := servertest.Redis(t)
	cluster := servertest.RedisCluster(t, 1, 0)
	single, onSingle := noted(t, server.Addr(), "APPEND")
	node, onNode := noted(t, cluster.Nodes[0].Addr(), "APPEND")
	through := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, node.Addr())
	}
	plain := redis.NewClient(&redis.Options{Addr: single.Addr()})
	if n := plain.Options().MaxRetries; n < 1 {
		t.Fatalf("a client repeats %d times: nothing is tried here", n)
	}
	for name, c := range map[string]struct {
		client redis.UniversalClient
		seen   *atomic.Int64
	}{
		"a client by default":    {plain, onSingle},
		"a Cluster's by default": {redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{cluster.Nodes[0].Addr()}, Dialer: through}), onNode},
		"a Cluster's without retries": {redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{cluster.Nodes[0].Addr()}, Dialer: through, MaxRetries: -1,
		}), onNode},
	} {
		t.Run(name, func(t *testing.T) {
			conn := connOf(t, c.client)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			c.seen.Store(0)
			if v, err := conn.Do(ctx, keyed("APPEND", "k", "x")); err == nil {
				t.Errorf("answered %v although the connection was cut", v)
			}
			if n := c.seen.Load(); n != 1 {
				t.Errorf("Do sent the command %d times; want once", n)
			}
			c.seen.Store(0)
			for _, r := range conn.DoAll(ctx, []redisconn.Command{keyed("APPEND", "k", "x")}) {
				if r.Err == nil {
					t.Errorf("answered %v although the connection was cut", r.Value)
				}
			}
			if n := c.seen.Load(); n != 1 {
				t.Errorf("DoAll sent the command %d times; want once", n)
			}
		})
	}
}

func TestConn_Answers(t *testing.T) {
	server := servertest.Redis(t)
	conn := connOf(t, redis.NewClient(&redis.Options{Addr: server.Addr()}))
	ctx := t.Context()
	for _, c := range []struct {
		cmd  redisconn.Command
		want any
	}{
		{keyed("SET", "s", "text"), "OK"},
		{keyed("GET", "s"), "text"},
		{keyed("GET", "missing"), nil},
		{keyed("INCR", "n"), int64(1)},
	} {
		if v, err := conn.Do(ctx, c.cmd); err != nil || v != c.want {
			t.Errorf("%v answered %v, %v; want %v", c.cmd.Words, v, err, c.want)
		}
	}
	if _, err := conn.Do(ctx, keyed("INCR", "s")); !redisconn.Is(err, "ERR") {
		t.Errorf("an error arrives as %T %v", err, err)
	}
	if conn.Node("k") != "" || conn.Moves() != nil || redisconn.Generation(conn) != 0 || conn.Abandons() {
		t.Errorf("one server: node %q, generation %d", conn.Node("k"), redisconn.Generation(conn))
	}
	conn.Close()
	if v, err := conn.Do(ctx, words("PING")); err != nil || v != "PONG" {
		t.Errorf("the user's client after Close: %v, %v; want it open", v, err)
	}
}

// The answers of a pipeline are each command's own: an error in the middle is nobody else's, and
// neither is a nil.
func TestConn_DoAllAnswersEach(t *testing.T) {
	cluster := servertest.RedisCluster(t, 3, 0)
	clients := map[string]redis.UniversalClient{
		"single":  redis.NewClient(&redis.Options{Addr: servertest.Redis(t).Addr()}),
		"cluster": redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{cluster.Nodes[0].Addr()}}),
	}
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			conn := connOf(t, client)
			replies := conn.DoAll(t.Context(), []redisconn.Command{
				keyed("SET", "a", "1"), keyed("GET", "missing"), keyed("LPUSH", "a", "x"), keyed("INCR", "b"), keyed("INCR", "c"),
			})
			if r := replies[0]; r.Err != nil || r.Value != "OK" {
				t.Errorf("SET: %v, %v", r.Value, r.Err)
			}
			if r := replies[1]; r.Err != nil || r.Value != nil {
				t.Errorf("GET of nothing: %v, %v", r.Value, r.Err)
			}
			if r := replies[2]; !redisconn.Is(r.Err, "WRONGTYPE") {
				t.Errorf("LPUSH to a string: %v, %v", r.Value, r.Err)
			}
			for _, r := range replies[3:] {
				if r.Err != nil || r.Value != int64(1) {
					t.Errorf("INCR: %v, %v", r.Value, r.Err)
				}
			}
		})
	}
}

// Where the connection ends before the answers are complete, no command without one looks as if it
// had been answered nil.
func TestConn_DoAllTellsWhatWasNotAnswered(t *testing.T) {
	server := servertest.Redis(t)
	w := wire.New(t, server.Addr())
	conn := connOf(t, redis.NewClient(&redis.Options{Addr: w.Addr()}))
	if _, err := conn.Do(t.Context(), words("PING")); err != nil {
		t.Fatal(err)
	}
	lost := false
	w.Filter(wire.Replies, func(frame []byte) bool {
		if !lost && strings.HasPrefix(string(frame), ":2") {
			lost = true
			go w.Cut()
		}
		return !lost
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	replies := conn.DoAll(ctx, []redisconn.Command{keyed("INCR", "n"), keyed("INCR", "n"), keyed("GET", "missing")})
	for i, r := range replies[1:] {
		if r.Err == nil {
			t.Errorf("command %d: answered %v although the connection was cut", i+1, r.Value)
		}
	}
}

// A client that reads for five seconds by itself does not hold up a call whose deadline is earlier.
func TestConn_ReturnsByTheDeadline(t *testing.T) {
	server := servertest.Redis(t)
	w := wire.New(t, server.Addr())
	for name, heeds := range map[string]bool{"a client that heeds deadlines": true, "one that does not": false} {
		t.Run(name, func(t *testing.T) {
			conn := connOf(t, redis.NewClient(&redis.Options{Addr: w.Addr(), ReadTimeout: time.Minute, ContextTimeoutEnabled: heeds}))
			if _, err := conn.Do(t.Context(), words("PING")); err != nil {
				t.Fatal(err)
			}
			heal := w.Stall(wire.Replies)
			defer w.Cut()
			defer heal()
			for _, call := range []func(ctx context.Context) error{
				func(ctx context.Context) error { _, err := conn.Do(ctx, words("PING")); return err },
				func(ctx context.Context) error {
					return conn.DoAll(ctx, []redisconn.Command{words("PING"), words("PING")})[1].Err
				},
			} {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 50*time.Millisecond)
				started := time.Now()
				err := call(ctx)
				cancel()
				if err == nil || time.Since(started) > 30*time.Second {
					t.Errorf("%v after %v; want an error by the deadline", err, time.Since(started))
				}
				if redisconn.Classify(err) != err { //nolint:errorlint // itself, not something that wraps it
					t.Errorf("%v is classified as %v; want the outcome open", err, redisconn.Classify(err))
				}
			}
		})
	}
}

// inbox collects messages.
type inbox struct {
	mu   sync.Mutex
	got  []string
	more chan struct{}
}

func newInbox() *inbox { return &inbox{more: make(chan struct{}, 100)} }

func (i *inbox) hear(payload string) {
	i.mu.Lock()
	i.got = append(i.got, payload)
	i.mu.Unlock()
	i.more <- struct{}{}
}

func within(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	select {
	case <-c:
	case <-ctx.Done():
		t.Fatalf("%s: not within 20 s", what)
	}
}

func TestSubscribe_EndsWithItsConnection(t *testing.T) {
	server := servertest.Redis(t)
	w := wire.New(t, server.Addr())
	conn := connOf(t, redis.NewClient(&redis.Options{Addr: w.Addr()}))
	in := newInbox()
	s, err := conn.Subscribe(t.Context(), "k", "news", in.hear)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := server.Do("PUBLISH", "news", "one"); err != nil || n != "1" {
		t.Fatalf("PUBLISH reached %s, %v; want one subscriber when Subscribe has returned", n, err)
	}
	within(t, in.more, "the first message")
	w.Cut()
	within(t, s.Done, "the end of a subscription whose connection was cut")
	if n, err := server.Do("PUBLISH", "news", "two"); err != nil || n != "0" {
		t.Errorf("PUBLISH reached %s, %v; want nobody: a subscription that comes back by itself hides that messages were lost", n, err)
	}
	if c := w.Count().Connections; c != 1 {
		t.Errorf("%d connections were made; want 1: the subscription is not made again by itself", c)
	}
	s.Close()

	again, err := conn.Subscribe(t.Context(), "k", "news", in.hear)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	again.Close()
	within(t, again.Done, "the end of a subscription that was closed")
}

func TestSubscribe_ReturnsByTheDeadline(t *testing.T) {
	server := servertest.Redis(t)
	w := wire.New(t, server.Addr())
	heal := w.Stall(wire.Replies)
	defer heal()
	conn := connOf(t, redis.NewClient(&redis.Options{Addr: w.Addr(), ReadTimeout: time.Second}))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	started := time.Now()
	if s, err := conn.Subscribe(ctx, "k", "news", func(string) {}); err == nil {
		s.Close()
		t.Error("subscribed although the server does not answer")
	}
	if took := time.Since(started); took > 20*time.Second {
		t.Errorf("returned after %v", took)
	}
}

func TestClusterClient(t *testing.T) {
	cluster := servertest.RedisCluster(t, 3, 0)
	conn := connOf(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{cluster.Nodes[0].Addr()}}))
	for _, key := range []string{"a", "b", "c", "d", "{}x", "a}b"} {
		owner := cluster.Owner(cluster.Slot(key))
		if got := conn.Node(key); got != owner.Addr() {
			t.Errorf("Node(%q) = %s; want %s", key, got, owner.Addr())
		}
		in := newInbox()
		s, err := conn.Subscribe(t.Context(), key, "news", in.hear)
		if err != nil {
			t.Fatal(err)
		}
		if s.Node != owner.Addr() {
			t.Errorf("subscribed at %s; want %s", s.Node, owner.Addr())
		}
		if n, err := owner.Do("PUBLISH", "news", "one"); err != nil || n != "1" {
			t.Errorf("the owner of %q counts %s subscribers, %v; want 1", key, n, err)
		}
		s.Close()
	}
	visited := map[string]bool{}
	err := conn.EachMaster(t.Context(), func(do redisconn.DoFunc) error {
		v, err := do(t.Context(), "CLUSTER", "MYID")
		id, _ := v.(string)
		visited[id] = true
		return err
	})
	if err != nil || len(visited) != 3 {
		t.Errorf("visited %d masters, %v; want 3", len(visited), err)
	}
	stop := errors.New("stop")
	if err := conn.EachMaster(t.Context(), func(redisconn.DoFunc) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("EachMaster: %v; want the visit's error", err)
	}

	// A redirection says that nothing was done, and is followed.
	slot := cluster.Slot("a")
	to := cluster.Nodes[0]
	if to == cluster.Owner(slot) {
		to = cluster.Nodes[1]
	}
	if err := cluster.Move(t.Context(), slot, to); err != nil {
		t.Fatal(err)
	}
	if v, err := conn.Do(t.Context(), keyed("SET", "a", "1")); err != nil || v != "OK" {
		t.Errorf("SET of a key whose slot has moved: %v, %v", v, err)
	}
	if v, err := to.Do("GET", "a"); err != nil || v != "1" {
		t.Errorf("the new owner has %q, %v; want 1", v, err)
	}
}

func TestFailoverClient(t *testing.T) {
	s := servertest.Sentinel(t)
	var addrs []string
	for _, node := range s.Nodes {
		addrs = append(addrs, node.Addr())
	}
	conn := connOf(t, redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "mymaster", SentinelAddrs: addrs}))
	in := newInbox()
	sub, err := conn.Subscribe(t.Context(), "k", "news", in.hear)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.Master.Do("PUBLISH", "news", "one"); err != nil || n != "1" {
		t.Fatalf("the master counts %s subscribers, %v; want 1", n, err)
	}
	if err := s.Failover(t.Context()); err != nil {
		t.Fatal(err)
	}
	within(t, sub.Done, "the end of a subscription at a master that is dead")
	again, err := conn.Subscribe(t.Context(), "k", "news", in.hear)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if n, err := s.Master.Do("PUBLISH", "news", "two"); err != nil || n != "1" {
		t.Errorf("the new master counts %s subscribers, %v; want 1", n, err)
	}
	if v, err := conn.Do(t.Context(), keyed("SET", "k", "v")); err != nil || v != "OK" {
		t.Errorf("SET after the failover: %v, %v", v, err)
	}
}
