//go:build linux || darwin

package torture

import (
	"cmp"
	"os"
	"strconv"
	"testing"
	"time"

	_ "github.com/interlock-go/interlock/memcachedlock"
)

// A storm over a memcached: links stall; it is stopped, or forgets, and then two may hold, and
// tokens grow all the same.
func TestStormOverMemcached(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm: make proof")
	}
	length := stormLength(t)
	c := Config{Start: Memcached, Processes: 6, Goroutines: 2, Names: 4}
	t.Run("usual", func(t *testing.T) {
		c.want = func(t Trial) bool { return len(unjudged(t)) == 0 }
		kept(t, stormOver(t, c, "", 2*length), nil)
	})
	t.Run("evict", func(t *testing.T) {
		c.Faults, c.want = []string{FaultEvict, FaultLink, FaultPause}, enough
		withstood(t, stormOver(t, c, "", 2*length), []string{"V3", "V4"})
	})
}

// The lock goes from one process to another again and again: no two hold it, no token is out of
// order, nothing is lost. The real number, 20,000, is a part of make proof. Who asks first gets it,
// so nobody promises fairness.
func TestHandoffsOfMemcached(t *testing.T) {
	n, err := strconv.Atoi(cmp.Or(os.Getenv(handoffsVariable), "100"))
	if err != nil {
		t.Fatalf("%s: %v", handoffsVariable, err)
	}
	trials := torment(t, Config{
		Start: Memcached, Scenarios: []string{Handoffs}, For: 200 * time.Millisecond, Handoffs: n, patient: true, tries: true,
		Processes: 4, Goroutines: 1, Fairness: 0.01,
	})
	if got := trials[0].Figure("handoffs"); got < float64(n) {
		t.Errorf("%v handoffs, want %d", got, n)
	}
}
