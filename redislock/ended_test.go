package redislock_test

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
