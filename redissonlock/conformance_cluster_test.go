//go:build linux || darwin

package redissonlock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redissonlock"
)

func TestConformanceCluster(t *testing.T) {
	t.Parallel()
	conformCluster(t, redistest.Connect, selection)
}

func TestConformanceClusterByGoRedis(t *testing.T) {
	t.Parallel()
	conformCluster(t, redistest.GoRedisCluster, []string{"Law06", "Law07", "Law13", "Law14"})
}

// conformCluster tries laws on one Cluster.
func conformCluster(t *testing.T, connect func(t drivertest.T, b *redistest.Board, rawURL string) redisconn.Conn, laws []string) {
	t.Helper()
	c := servertest.RedisCluster(t, 3, 0, redistest.Durable...)
	if err := redistest.Teach(c, redissonlock.Scripts()); err != nil {
		t.Fatal(err)
	}
	redistest.Try(t, laws, func(*testing.T) drivertest.Harness {
		return redistest.NewHarness(redistest.Store{
			URL: "redisson" + strings.TrimPrefix(c.URL(), "redis"), TTL: time.Second, Budget: budget,
			Open:    func(t drivertest.T, b *redistest.Board) driver.Driver { return over(t, connect(t, b, c.URL())) },
			Restart: func(ctx context.Context) error { return redistest.RestartCluster(ctx, c, redissonlock.Scripts()) },
		})
	})
}
