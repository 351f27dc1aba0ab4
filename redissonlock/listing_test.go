package redissonlock_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// What a list costs where very many names are free, and where very many are held.
// docs/backends/redisson.md has the figures.
func TestWhatAListCosts(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of thousands of names: make proof")
	}
	for _, l := range []redistest.Listing{{Free: 200_000, Held: 10, Scripts: 20}, {Held: 10_000, Waiting: 1000, Scripts: 10_100}} {
		t.Run(fmt.Sprintf("%d free, %d held, %d waiting", l.Free, l.Held, l.Waiting), func(t *testing.T) {
			server := servertest.Redis(t)
			l.Servers, l.Counter = []*servertest.Server{server}, `'redisson_lock_token:{' .. n .. '}'`
			l.URL = strings.Replace(server.URL(), "redis://", "redisson://", 1) + "?timeout=60s"
			l.Try(t)
		})
	}
}
