//go:build linux || darwin

package redissonlock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// clients are the three ways to a server.
var clients = map[string]redistest.Opening{"by URL": byURL, "rueidis": byRueidis, "go-redis": byGoRedis}

func TestConnectionsEndWhileIdle(t *testing.T) {
	t.Parallel()
	redistest.TryEndsWhileIdle(t, clients)
}

func TestConnectionsEndUnderWay(t *testing.T) {
	t.Parallel()
	redistest.TryEndsUnderWay(t, clients)
}

// A server that is restarted without a log has forgotten who holds, and gives the lock to the next
// one. Whoever holds sees the end of the connection that listens, and asks long before the next
// renewal.
func TestHolderAsksWhenItsConnectionEnds(t *testing.T) {
	t.Parallel()
	for _, shape := range []shape{mutexes, readers} {
		server := servertest.Redis(t)
		client := redistest.OpenClient(t, "redisson"+strings.TrimPrefix(server.URL(), "redis"), &interlock.Options{TTL: 10 * time.Minute, Grace: 100 * time.Millisecond})
		lease := taken(t, client, shape, "m")
		until(t, "the holder is not connected, and renewed after that", func() bool {
			return strings.Contains(server.MustDo(t, "INFO", "commandstats"), "cmdstat_hexists:calls=")
		})
		if err := errors.Join(server.Kill(), server.Restart(t.Context())); err != nil {
			t.Fatal(err)
		}
		told(t, lease)
	}
}

// Whoever releases is back when its context ends, also where the connection that others share has
// to be made for it.
func TestAReleaseDoesNotWaitForANewConnection(t *testing.T) {
	t.Parallel()
	w := wire.New(t, servertest.Redis(t).Addr())
	redistest.TryReleaseWhileConnecting(t, byURL(t, w.Addr()+"?timeout=90s&keepalive=90s"), w)
}
