//go:build linux || darwin

package torture

import (
	"testing"
	"time"

	_ "github.com/interlock-go/interlock/shedlock"
)

// Storms over ShedLock's table: the database is stopped, killed and starts again, connections are
// ended, or all are taken by others, links stall. Two never hold a name. There are no tokens, so
// that the late write of a holder that was stopped may be the last.
func TestStormOverShedLock(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm: make proof")
	}
	length := stormLength(t)
	for _, start := range []string{ShedPostgres, ShedMariaDB} {
		t.Run(start, func(t *testing.T) {
			withstood(t, stormOver(t, Config{Start: start, TTL: 600 * time.Millisecond, Processes: 6, Goroutines: 2, Names: 4, want: enough}, "", length), []string{"V2"})
		})
	}
}

// The lock goes from one process to another again and again: no two hold it, nothing is lost. The
// real number, 10,000, is a part of make proof.
func TestHandoffsOfShedLock(t *testing.T) {
	for _, start := range []string{ShedPostgres, ShedMariaDB} {
		t.Run(start, func(t *testing.T) {
			t.Parallel()
			handOver(t, Config{Start: start, Fairness: 0.01})
		})
	}
}
