//go:build linux || darwin

package redissonlock_test

import (
	"testing"

	"github.com/interlock-go/interlock/internal/redistest"
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
