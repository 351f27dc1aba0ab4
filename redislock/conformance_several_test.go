package redislock_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
)

// several is a Cluster, or a master with Sentinels, for the conformance suite. One set of servers
// serves all laws.
type several struct {
	url     string
	idle    []string // servers that only tell where others are
	restart func(ctx context.Context) error
	upset   func(ctx context.Context) error // has masters change, between two laws
}

func cluster(t *testing.T) several {
	t.Helper()
	c := servertest.RedisCluster(t, 3, 1, redistest.Durable...)
	texts := scripts(t)
	if err := redistest.Teach(c, texts); err != nil {
		t.Fatal(err)
	}
	return several{
		url: c.URL(), restart: func(ctx context.Context) error { return redistest.RestartCluster(ctx, c, texts) },
		upset: func(ctx context.Context) error {
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
		},
	}
}

// scripts returns the texts of the scripts that claims use.
func scripts(t *testing.T) (texts []string) {
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
		texts = append(texts, string(text))
	}
	return texts
}

func sentinels(t *testing.T) several {
	t.Helper()
	s := servertest.Sentinel(t, redistest.Durable...)
	var idle []string
	for _, node := range s.Nodes {
		idle = append(idle, node.Addr())
	}
	// Sentinels that are patient take no restart for a death: a failover in the middle of a law may
	// lose its locks.
	patience := func(ms int) {
		for _, node := range s.Nodes {
			node.MustDo(t, "SENTINEL", "SET", "mymaster", "down-after-milliseconds", strconv.Itoa(ms))
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

// connecting makes a connection to the store by a client that dials through the proxies.
type connecting func(t drivertest.T, b *redistest.Proxies, rawURL string) redisconn.Conn

func failoverByGoRedis(t drivertest.T, b *redistest.Proxies, rawURL string) redisconn.Conn {
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return redistest.GoRedis(t, redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: strings.Trim(u.Path, "/"), SentinelAddrs: strings.Split(u.Host, ","), MaxRetries: -1, Dialer: b.Dial,
	}))
}

func TestConformanceClusterByURL(t *testing.T) {
	if testing.Short() {
		t.Skip("laws over a Cluster: make proof")
	}
	conformSeveral(t, cluster(t), redistest.Connect, every())
}

func TestConformanceSentinelByURL(t *testing.T) {
	if testing.Short() {
		t.Skip("laws over Sentinels: make proof")
	}
	conformSeveral(t, sentinels(t), redistest.Connect, every())
}

func every() (names []string) {
	for _, law := range drivertest.Laws() {
		names = append(names, law.Name)
	}
	return names
}

// selection is of the laws that depend on how a client follows masters, subscribes and reports
// errors.
var selection = []string{
	"Law05", "Law06", "Law07", "Law10", "Law12", "Law13", "Law14", "Also_Requeue", "Also_Inspector",
}

func TestConformanceClusterByGoRedis(t *testing.T) {
	if testing.Short() {
		t.Skip("laws over a Cluster: make proof")
	}
	conformSeveral(t, cluster(t), redistest.GoRedisCluster, selection)
}

func TestConformanceSentinelByGoRedis(t *testing.T) {
	if testing.Short() {
		t.Skip("laws over Sentinels: make proof")
	}
	conformSeveral(t, sentinels(t), failoverByGoRedis, selection)
}

// conformSeveral tries laws, the last half of them after masters have changed.
func conformSeveral(t *testing.T, servers several, connect connecting, laws []string) {
	t.Helper()
	tried := 0
	redistest.Try(t, laws, func(t *testing.T) drivertest.Harness {
		if tried++; tried == len(laws)/2 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := servers.upset(ctx); err != nil {
				t.Fatal(err)
			}
		}
		return redistest.NewHarness(redistest.Store{
			URL: servers.url, TTL: 2500 * time.Millisecond, Budget: budget, Restart: servers.restart,
			Open: func(t drivertest.T, b *redistest.Proxies) driver.Driver {
				b.Idle = servers.idle
				return over(t, connect(t, b, servers.url))
			},
		})
	})
}
