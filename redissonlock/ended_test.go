//go:build linux || darwin

package redissonlock_test

import (
	"testing"

	"github.com/interlock-go/interlock/internal/redistest"
)

// clients are the three ways to a server.
var clients = map[string]redistest.Opening{"by URL": byURL, "rueidis": byRueidis, "go-redis": byGoRedis}

// A connection that has ended while it was idle never shows.
func TestConnectionsEndWhileIdle(t *testing.T) {
	t.Parallel()
	for what, open := range clients {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			redistest.TryIdleEnds(t, open)
			if what != "rueidis" { // sends a PING each second
				redistest.TryIdleTimeout(t, open)
			}
		})
	}
}

// Nor does one that ends while a request is under way, except where nobody can say what became of a release.
func TestConnectionsEndUnderWay(t *testing.T) {
	t.Parallel()
	for what, open := range clients {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			redistest.TryCuts(t, open)
			redistest.TryCutsInARow(t, open)
			redistest.TryCutAndReleased(t, open)
			redistest.TryLateArrival(t, open)
		})
	}
}
