//go:build linux || darwin

package torture

import (
	"cmp"
	"os"
	"strconv"
	"testing"
	"time"

	_ "github.com/interlock-go/interlock/etcdlock"
)

// A storm over three members of an etcd: one is stopped, one is killed and starts again, all start
// again one after another, links stall. The version that is tested can end leases when a leader was
// stopped, so that two may hold then; tokens grow.
func TestStormOverEtcd(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm: make proof")
	}
	length := stormLength(t)
	for _, c := range []struct {
		faults []string
		excuse []string
	}{
		{nil, nil},
		{[]string{FaultPause}, []string{"V3", "V4"}},
	} {
		t.Run(cmp.Or(append(c.faults, "usual")[0]), func(t *testing.T) {
			trial := stormOver(t, Config{Start: Etcd, Faults: c.faults, TTL: 2 * time.Second, Processes: 6, Goroutines: 2, Names: 4, want: enough}, "", 2*length)
			withstood(t, trial, c.excuse)
		})
	}
}

// The lock goes from one process to another again and again: no two hold it, no token is out of
// order, nothing is lost. The real number, 100,000, is a part of make proof.
func TestHandoffsOfEtcd(t *testing.T) {
	n, err := strconv.Atoi(cmp.Or(os.Getenv(handoffsVariable), "100"))
	if err != nil {
		t.Fatalf("%s: %v", handoffsVariable, err)
	}
	fairness := 0.5
	if n < 1000 {
		fairness = 0.01 // some processes began when the others were nearly done
	}
	trials := torment(t, Config{
		Start: Etcd, Scenarios: []string{Handoffs}, For: 200 * time.Millisecond, Handoffs: n, patient: true,
		Processes: 4, Goroutines: 1, Fairness: fairness,
	})
	if got := trials[0].Figure("handoffs"); got < float64(n) {
		t.Errorf("%v handoffs, want %d", got, n)
	}
}
