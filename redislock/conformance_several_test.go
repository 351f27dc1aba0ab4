package redislock_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
)

// several is a Cluster, or a master with Sentinels, for the conformance suite.
type several struct {
	url     string
	idle    []string // servers that only tell where others are
	restart func(ctx context.Context) error
	upset   func(ctx context.Context) error // has masters change, between two laws
}

func cluster(t *testing.T) several {
	t.Helper()
	c := servertest.RedisCluster(t, 3, 1, durable...)
	teach(t, c.Nodes...)
	return several{url: c.URL(), restart: func(ctx context.Context) error {
		errs := make(chan error, len(c.Nodes))
		for _, node := range c.Nodes {
			go func() { errs <- node.Restart(ctx) }()
		}
		for range c.Nodes {
			if err := <-errs; err != nil {
				return err
			}
		}
		teach(t, c.Nodes...)
		return works(ctx, c)
	}, upset: func(ctx context.Context) error {
		for slot := 0; slot < redisconn.Slots; slot += redisconn.Slots / 4 {
			owner := slices.Index(c.Nodes, c.Owner(slot))
			if err := c.Move(ctx, slot, c.Nodes[(owner+1)%3]); err != nil {
				return err
			}
		}
		if err := c.KillMaster(ctx, 1); err != nil {
			return err
		}
		return c.Nodes[1].Restart(ctx)
	}}
}

// works returns when every node says that the Cluster works, and every replica has its copy.
func works(ctx context.Context, c *servertest.Cluster) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok := true
		for _, node := range c.Nodes {
			info, err := node.Do("CLUSTER", "INFO")
			ok = ok && err == nil && strings.Contains(info, "cluster_state:ok")
			info, err = node.Do("INFO", "replication")
			ok = ok && err == nil && (strings.Contains(info, "role:master") || strings.Contains(info, "master_link_status:up"))
		}
		if ok {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func sentinels(t *testing.T) several {
	t.Helper()
	s := servertest.Sentinel(t, durable...)
	var idle []string
	for _, node := range s.Nodes {
		idle = append(idle, node.Addr())
	}
	// Sentinels that are patient take no restart for a death: a failover in the middle of a law may lose its locks.
	patience := func(ms int) {
		for _, node := range s.Nodes {
			do(t, node, "SENTINEL", "SET", "mymaster", "down-after-milliseconds", strconv.Itoa(ms))
		}
	}
	patience(60_000)
	return several{
		url: s.URL(), idle: idle, restart: func(ctx context.Context) error { return s.Master.Restart(ctx) },
		upset: func(ctx context.Context) error {
			patience(500)
			if err := s.Failover(ctx); err != nil {
				return err
			}
			if err := s.Rejoin(ctx); err != nil {
				return err
			}
			patience(60_000)
			return nil
		},
	}
}

// teach has every master know the scripts: the first use of each would cost a second call, and a law that counts calls
// cannot know which master a new name is at.
func teach(t *testing.T, nodes ...*servertest.Server) {
	t.Helper()
	files, err := filepath.Glob("*.lua")
	if err != nil || len(files) == 0 {
		t.Fatalf("scripts: %q, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, node := range nodes {
			if _, err := node.Do("SCRIPT", "LOAD", string(text)); err != nil {
				t.Error(err)
			}
		}
	}
}

// connecting opens the store at u with a client that dials through the switchboard.
type connecting func(t drivertest.T, u *url.URL, b *switchboard) driver.Driver

// openedByURL does what the driver does with a URL.
func openedByURL(t drivertest.T, u *url.URL, b *switchboard) driver.Driver {
	p := driver.NewParams(u)
	config, err := redisconn.ParseURL(u, p)
	if err == nil {
		err = p.Err()
	}
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
	return overGoRedis(t, client)
}

func failoverByGoRedis(t drivertest.T, u *url.URL, b *switchboard) driver.Driver {
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: strings.Trim(u.Path, "/"), SentinelAddrs: strings.Split(u.Host, ","), MaxRetries: -1, Dialer: b.dial,
	})
	t.Cleanup(func() { _ = client.Close() })
	return overGoRedis(t, client)
}

func overGoRedis(t drivertest.T, client redis.UniversalClient) driver.Driver {
	conn, err := goredis.Conn(client)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return over(t, conn)
}

// fabric is a harness whose drivers each have a switchboard. One set of servers serves all laws.
type fabric struct {
	t       *testing.T
	servers several
	open    connecting
	prefix  string

	mu     sync.Mutex
	boards map[driver.Driver]*switchboard
}

func newFabric(t *testing.T, servers several, open connecting) *fabric {
	t.Helper()
	return &fabric{
		t: t, servers: servers, open: open, boards: map[driver.Driver]*switchboard{},
		prefix: fmt.Sprintf("suite/%d/", harnesses.Add(1)),
	}
}

func (f *fabric) Prefix() string     { return f.prefix }
func (f *fabric) TTL() time.Duration { return 1500 * time.Millisecond }

func (f *fabric) Driver(t drivertest.T) driver.Driver {
	u, err := url.Parse(f.servers.url)
	if err != nil {
		t.Fatalf("%v", err)
	}
	b := newSwitchboard(t, f.servers.idle...)
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
	if err := f.servers.restart(ctx); err != nil {
		t.Fatalf("restart: %v", err)
	}
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
	return drivertest.Budget{Acquire: 1, Release: 1, Handoff: 1}
}

func (f *fabric) Cannot(law string) string {
	return "a Redis knows no sessions that it could end: " + law + " is tried without"
}

func (f *fabric) Freeze(t drivertest.T, name string) (thaw func()) {
	w := startWorker(t, f.servers.url, name)
	w.stop(t)
	return sync.OnceFunc(w.kill)
}

func TestConformanceClusterByURL(t *testing.T) {
	conformSeveral(t, cluster(t), openedByURL)
}

func TestConformanceSentinelByURL(t *testing.T) {
	conformSeveral(t, sentinels(t), openedByURL)
}

// conformSeveral tries all laws, the last half of them after masters have changed.
func conformSeveral(t *testing.T, servers several, open connecting) {
	t.Helper()
	laws, law := len(drivertest.Laws()), 0
	drivertest.Run(t, func(t *testing.T) drivertest.Harness {
		if law++; law == laws/2 {
			servers.upsetFor(t)
		}
		return newFabric(t, servers, open)
	})
}

func (s several) upsetFor(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.upset(ctx); err != nil {
		t.Fatal(err)
	}
}

// selection is of the laws that depend on how a client follows masters, subscribes and reports errors.
var selection = []string{
	"Law05", "Law06", "Law07", "Law10", "Law12", "Law13", "Law14", "Also_Requeue", "Also_Inspector",
}

func TestConformanceClusterByGoRedis(t *testing.T) {
	conformSelected(t, cluster(t), clusterByGoRedis)
}

func TestConformanceSentinelByGoRedis(t *testing.T) {
	conformSelected(t, sentinels(t), failoverByGoRedis)
}

func conformSelected(t *testing.T, servers several, open connecting) {
	t.Helper()
	tried := 0
	for _, law := range drivertest.Laws() {
		if slices.ContainsFunc(selection, func(name string) bool { return strings.HasPrefix(law.Name, name) }) {
			if tried++; tried == len(selection)/2 {
				servers.upsetFor(t)
			}
			t.Run(law.Name, func(t *testing.T) { law.Try(t, newFabric(t, servers, open)) })
		}
	}
	if tried != len(selection) {
		t.Errorf("%d laws of %d in the selection", tried, len(selection))
	}
}
