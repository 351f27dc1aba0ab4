//go:build linux || darwin

package redissonlock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/worker"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redissonlock"
)

// opening makes a driver to the server at addr, with a client of its own.
type opening func(t drivertest.T, addr string) driver.Driver

// byURL is the client that redissonlock makes itself.
func byURL(t drivertest.T, addr string) driver.Driver { return redistest.Open(t, "redisson://"+addr) }

func byRueidis(t drivertest.T, addr string) driver.Driver { return over(t, redistest.Rueidis(t, addr)) }

func byGoRedis(t drivertest.T, addr string) driver.Driver {
	return over(t, redistest.GoRedis(t, redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})))
}

func over(t drivertest.T, conn redisconn.Conn) driver.Driver {
	d, err := redissonlock.New(context.Background(), conn, nil)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return d
}

func TestMain(m *testing.M) {
	worker.Work()
	m.Run()
}

// budget: a handoff is the release, which tells, and the question of who was told.
var budget = drivertest.Budget{Acquire: 1, Release: 1, Handoff: 2}

func TestConformanceByURL(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, harness(byURL))
}

// selection is of the laws that depend on how a client finds masters, subscribes and reports
// errors, or on names.
var selection = []string{"Law05", "Law06", "Law07", "Law09", "Law10", "Law12", "Law13", "Law14", "Law15", "Also_Inspector"}

func TestConformanceByGoRedis(t *testing.T) {
	if testing.Short() {
		t.Skip("another client, the same laws: make proof")
	}
	t.Parallel()
	redistest.Try(t, selection, harness(byGoRedis))
}

// harness has a server for each law.
func harness(open opening) func(t *testing.T) drivertest.Harness {
	return func(t *testing.T) drivertest.Harness {
		t.Helper()
		return redistest.Single(t, "redisson", budget, open)
	}
}

func TestConformanceCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("laws over a Cluster: make proof")
	}
	t.Parallel()
	conformCluster(t, redistest.Connect, selection)
}

func TestConformanceClusterByGoRedis(t *testing.T) {
	if testing.Short() {
		t.Skip("laws over a Cluster: make proof")
	}
	t.Parallel()
	conformCluster(t, redistest.GoRedisCluster, []string{"Law06", "Law07", "Law13", "Law14"})
}

// conformCluster tries laws on one Cluster.
func conformCluster(t *testing.T, connect func(t drivertest.T, b *redistest.Proxies, rawURL string) redisconn.Conn, laws []string) {
	t.Helper()
	c := servertest.RedisCluster(t, 3, 0, redistest.Durable...)
	if err := redistest.Teach(c, redissonlock.Scripts()); err != nil {
		t.Fatal(err)
	}
	redistest.Try(t, laws, func(*testing.T) drivertest.Harness {
		return redistest.NewHarness(redistest.Store{
			URL: "redisson" + strings.TrimPrefix(c.URL(), "redis"), TTL: 2 * time.Second, Budget: budget,
			Open:    func(t drivertest.T, b *redistest.Proxies) driver.Driver { return over(t, connect(t, b, c.URL())) },
			Restart: func(ctx context.Context) error { return redistest.RestartCluster(ctx, c, redissonlock.Scripts()) },
		})
	})
}

func TestFullMemory(t *testing.T) {
	t.Parallel()
	redistest.TryFullMemory(t, byURL)
}
