//go:build linux || darwin

package torture

import (
	"strings"
	"testing"
)

// Each lock with a flaw is convicted by the check that its flaw breaks, and the correct lock is not under the same faults.
func TestFlawedLocksAreConvicted(t *testing.T) {
	for _, k := range controls {
		t.Run(k.flaw, func(t *testing.T) {
			t.Parallel() // they wait for most of the time
			trials := torment(t, Config{Store: "", Flawed: []string{k.flaw}, Seed: 1})
			if len(trials) != 2 {
				t.Fatalf("%d trials, want the lock with the flaw and the correct one", len(trials))
			}
			bad := trials[0].check(k.check)
			if bad.Violations == 0 || len(bad.Stories) == 0 || !strings.Contains(bad.Stories[0], " ms  ") {
				t.Errorf("%s: %d violations, stories %q: want it convicted, and told how", k.check, bad.Violations, bad.Stories)
			}
		})
	}
}
