//go:build linux || darwin

package torture

import (
	"testing"
	"time"
)

// A storm over a MariaDB: it is stopped, killed and starts again, connections are ended, its
// connections are taken by others, links stall.
func TestStormOverMariaDB(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm: make proof")
	}
	length := stormLength(t)
	for _, query := range []string{"", "?timeout=500ms"} {
		t.Run(MariaDB+query, func(t *testing.T) {
			withstood(t, stormOver(t, Config{Start: MariaDB + query, TTL: 600 * time.Millisecond, Processes: 6, Goroutines: 2, Names: 4, want: enough}, "", length), nil)
		})
	}
}

// The lock goes from one process to another again and again, by each technique and in transactions: no two hold it, no token is out of order, nothing is lost. The
// real numbers, 300,000 by rows and session, are parts of make proof.
func TestHandoffsOfMariaDB(t *testing.T) {
	for _, c := range []struct{ name, query, tx string }{{"rows", "", ""}, {"session", "?technique=session", ""}, {"rowlock", "?technique=rowlock", ""}, {"intx", "", byRow}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			handOver(t, Config{Start: MariaDB + c.query, tx: c.tx})
		})
	}
}
