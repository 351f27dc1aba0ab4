//go:build linux || darwin

package redissonlock_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/wire"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redisconn/goredis"
	"github.com/interlock-go/interlock/redissonlock"
)

// fabric is a Cluster for the conformance suite. Each driver reaches it through a switchboard; one Cluster serves all laws.
type fabric struct {
	t       *testing.T
	cluster *servertest.Cluster
	open    func(t drivertest.T, u *url.URL, b *switchboard) driver.Driver
	prefix  string

	mu     sync.Mutex
	boards map[driver.Driver]*switchboard
}

func newFabric(t *testing.T, c *servertest.Cluster, open func(t drivertest.T, u *url.URL, b *switchboard) driver.Driver) *fabric {
	t.Helper()
	return &fabric{
		t: t, cluster: c, open: open, boards: map[driver.Driver]*switchboard{}, prefix: fmt.Sprintf("suite/%d/", harnesses.Add(1)),
	}
}

func newCluster(t *testing.T) *servertest.Cluster {
	t.Helper()
	c := servertest.RedisCluster(t, 3, 0, durable...)
	teach(t, c.Nodes...)
	return c
}

// teach has every master know the scripts: the first use of each would cost a second call, and a law that counts calls
// cannot know which master a new name is at.
func teach(t *testing.T, nodes ...*servertest.Server) {
	t.Helper()
	for _, text := range redissonlock.Scripts() {
		for _, node := range nodes {
			if _, err := node.Do("SCRIPT", "LOAD", text); err != nil {
				t.Error(err)
			}
		}
	}
}

func clusterByURL(t drivertest.T, u *url.URL, b *switchboard) driver.Driver {
	p := driver.NewParams(u)
	config, err := redisconn.ParseURL(u, p)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	config.Dial = b.dial
	conn, err := redisconn.Open(context.Background(), config)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(conn.Close)
	return over(t, conn)
}

func clusterByGoRedis(t drivertest.T, u *url.URL, b *switchboard) driver.Driver {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: strings.Split(u.Host, ","), MaxRetries: -1, Dialer: b.dial})
	t.Cleanup(func() { _ = client.Close() })
	conn, err := goredis.Conn(client)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return over(t, conn)
}

func (f *fabric) Prefix() string     { return f.prefix }
func (f *fabric) TTL() time.Duration { return time.Second }

func (f *fabric) Driver(t drivertest.T) driver.Driver {
	u, err := url.Parse(f.cluster.URL())
	if err != nil {
		t.Fatalf("%v", err)
	}
	b := newSwitchboard(t)
	d := f.open(t, u, b)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.boards[d] = b
	return d
}

func (f *fabric) board(d driver.Driver) *switchboard {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.boards[d]
}

func (f *fabric) Kill(_ drivertest.T, d driver.Driver) { f.board(d).kill() }

func (f *fabric) Restart(t drivertest.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	errs := make(chan error, len(f.cluster.Nodes))
	for _, node := range f.cluster.Nodes {
		go func() { errs <- node.Restart(ctx) }()
	}
	for range f.cluster.Nodes {
		if err := <-errs; err != nil {
			t.Fatalf("restart: %v", err)
		}
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !f.works() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the Cluster does not work after a restart: %v", ctx.Err())
		}
	}
	teach(f.t, f.cluster.Nodes...)
}

// works reports whether every node says that the Cluster works.
func (f *fabric) works() bool {
	return !slices.ContainsFunc(f.cluster.Nodes, func(node *servertest.Server) bool {
		info, err := node.Do("CLUSTER", "INFO")
		return err != nil || !strings.Contains(info, "cluster_state:ok")
	})
}

func (f *fabric) Stall(_ drivertest.T, d driver.Driver, way drivertest.Way) (heal func()) {
	if way == drivertest.Replies {
		return f.board(d).stall(wire.Replies)
	}
	return f.board(d).stall(wire.Both)
}

func (f *fabric) Deafen(_ drivertest.T, d driver.Driver) (heal func()) { return f.board(d).deafen() }

func (f *fabric) Calls(d driver.Driver) int { return int(f.board(d).calls.Load()) }

func (f *fabric) Budget() drivertest.Budget {
	return drivertest.Budget{Acquire: 1, Release: 1, Handoff: 2}
}

func (f *fabric) Cannot(law string) string {
	return "a Redis knows no sessions that it could end: " + law + " is tried without"
}

func (f *fabric) Freeze(t drivertest.T, name string) (thaw func()) {
	w := startWorker(t, "redisson"+strings.TrimPrefix(f.cluster.URL(), "redis"), name)
	w.stop(t)
	return sync.OnceFunc(w.kill)
}

// selection is of the laws that depend on how a client finds masters, subscribes and reports errors, or on names.
var selection = []string{"Law05", "Law06", "Law07", "Law09", "Law10", "Law12", "Law13", "Law14", "Law15", "Also_Inspector"}

func TestConformanceCluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	try(t, selection, func(t *testing.T) drivertest.Harness { return newFabric(t, c, clusterByURL) })
}

func TestConformanceClusterByGoRedis(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	try(t, []string{"Law06", "Law07", "Law13", "Law14"}, func(t *testing.T) drivertest.Harness { return newFabric(t, c, clusterByGoRedis) })
}

func TestConformanceByGoRedis(t *testing.T) {
	t.Parallel()
	try(t, selection, func(t *testing.T) drivertest.Harness {
		return newHarness(t, servertest.Redis(t, durable...), byGoRedis)
	})
}

// try tries some of the laws.
func try(t *testing.T, names []string, newHarness func(t *testing.T) drivertest.Harness) {
	t.Helper()
	tried := 0
	for _, law := range drivertest.Laws() {
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(law.Name, name) }) {
			tried++
			t.Run(law.Name, func(t *testing.T) { law.Try(t, newHarness(t)) })
		}
	}
	if tried != len(names) {
		t.Errorf("%d laws of %d in the selection", tried, len(names))
	}
}
