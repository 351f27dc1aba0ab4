//go:build linux || darwin

package torture

import (
	"cmp"
	"os"
	"strconv"
	"testing"
	"time"

	_ "github.com/interlock-go/interlock/redissonlock"
)

// cutsVariable is how many links are to be cut.
const cutsVariable = "INTERLOCK_CUTS"

// Links are cut again and again: nobody is told late, and nothing is left open. The real number,
// 10,000 for each store, is for make soak.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm of links: make proof")
	}
	n, err := strconv.Atoi(cmp.Or(os.Getenv(cutsVariable), "20"))
	if err != nil {
		t.Fatalf("%s: %v", cutsVariable, err)
	}
	// where links are the conductor's, and where they are the workers'
	for _, start := range []string{OneRedis, Redisson, Sentinel} {
		t.Run(start, func(t *testing.T) {
			trials := torment(t, Config{Start: start, Scenarios: []string{Soak}, For: 10 * time.Second, Cuts: n})
			if cases := trials[0].check("V4").Cases; cases == 0 {
				t.Error("nobody lost a lease")
			}
		})
	}
}
