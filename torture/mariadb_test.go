//go:build linux || darwin

package torture

import (
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/torture/internal/worker"
)

// A storm over a MariaDB by each technique: it is stopped, killed and starts again, connections are
// ended, its connections are taken by others, links stall.
func TestStormOverMariaDB(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm: make proof")
	}
	length := stormLength(t)
	for _, c := range []struct {
		query  string
		faults []string
		excuse []string
	}{
		{"", nil, nil},
		{"?timeout=500ms", nil, nil},
		{"?technique=session", nil, []string{"V3", "V4"}},
		{"?technique=session", []string{FaultPause, FaultExhaust}, nil},
		{"?technique=rowlock", nil, []string{"V3", "V4"}},
		{"?technique=rowlock", []string{FaultPause, FaultExhaust}, nil},
	} {
		t.Run(MariaDB+c.query+strings.Join(append([]string{""}, c.faults...), " "), func(t *testing.T) {
			trial := stormOver(t, Config{Start: MariaDB + c.query, Faults: c.faults, TTL: 600 * time.Millisecond, Processes: 6, Goroutines: 2, Names: 4, want: enough}, "", length)
			withstood(t, trial, c.excuse)
		})
	}
}

// The lock goes from one process to another again and again, by each technique and in transactions:
// no two hold it, no token is out of order, nothing is lost. The real numbers, 300,000 by rows and
// session, are parts of make proof.
func TestHandoffsOfMariaDB(t *testing.T) {
	for _, c := range []struct{ name, query, tx string }{{"rows", "", ""}, {"session", "?technique=session", ""}, {"rowlock", "?technique=rowlock", ""}, {"intx", "", worker.ByRow}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			handOver(t, Config{Start: MariaDB + c.query, tx: c.tx})
		})
	}
}
