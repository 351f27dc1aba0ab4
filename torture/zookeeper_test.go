//go:build linux || darwin

package torture

import (
	"cmp"
	"os"
	"strconv"
	"testing"
	"time"
)

// A storm over a ZooKeeper and over an ensemble: members are stopped, killed and restarted, the
// leader among them, and links stall. Nothing is lost by that, in either layout, and no token comes
// twice.
func TestStormOverZooKeeper(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm: make proof")
	}
	length := stormLength(t)
	for _, start := range []string{ZooKeeper, ZooKeeperEnsemble, ZooKeeperEnsemble + "?mutex=semaphore", ZooKeeper + "?layout=kazoo"} {
		t.Run(start, func(t *testing.T) {
			trial := stormOver(t, Config{Start: start, TTL: time.Second, Processes: 6, Goroutines: 2, Names: 4, want: enough}, "", length)
			withstood(t, trial, nil)
		})
	}
}

// The lock goes from one process to another again and again: no two hold it, no token is out of
// order. The real number, 100,000, is a part of make proof.
func TestHandoffsOfZooKeeper(t *testing.T) {
	n, err := strconv.Atoi(cmp.Or(os.Getenv(handoffsVariable), "100"))
	if err != nil {
		t.Fatalf("%s: %v", handoffsVariable, err)
	}
	fairness := 0.5
	if n < 1000 {
		fairness = 0.01 // some processes began when the others were nearly done
	}
	for name, start := range map[string]string{"mutex": ZooKeeper, "semaphore": ZooKeeper + "?mutex=semaphore"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trials := torment(t, Config{
				Start: start, Scenarios: []string{Handoffs}, For: 200 * time.Millisecond, Handoffs: n, patient: true, Processes: 4, Goroutines: 1, Fairness: fairness,
			})
			if got := trials[0].Figure("handoffs"); got < float64(n) {
				t.Errorf("%v handoffs, want %d", got, n)
			}
		})
	}
}
