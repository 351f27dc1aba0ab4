//go:build linux || darwin

package torture

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// runsVariable is how often each lock with a flaw is to be convicted; default once. Ten are for a run by hand:
//
//	INTERLOCK_FLAWED_RUNS=10 go test -run TestFlawedLocksAreConvicted -timeout 1h -v ./torture
const runsVariable = "INTERLOCK_FLAWED_RUNS"

// Each lock with a flaw is convicted by the check that its flaw breaks, and the correct lock is not under the same faults.
func TestFlawedLocksAreConvicted(t *testing.T) {
	runs := 1
	if s := os.Getenv(runsVariable); s != "" {
		var err error
		if runs, err = strconv.Atoi(s); err != nil {
			t.Fatalf("%s: %v", runsVariable, err)
		}
	}
	t.Parallel()
	abreast := newAbreast(t)
	for _, k := range controls {
		abreast.run(k.flaw, func(t *testing.T) {
			for seed := range runs {
				trials := torment(t, Config{Flawed: []string{k.flaw}, Seed: uint64(seed + 1)})
				if want := 1 + len(k.correct()); len(trials) != want {
					t.Fatalf("%d trials, want %d: the lock with the flaw and the correct ones", len(trials), want)
				}
				bad := trials[0].check(k.check)
				if bad.Violations == 0 || len(bad.Stories) == 0 || !strings.Contains(bad.Stories[0], " ms  ") {
					t.Errorf("%s: %d violations, stories %q: want it convicted, and told how", k.check, bad.Violations, bad.Stories)
				}
			}
		})
	}
	abreast.wait()
}

// abreast runs several subtests at once, more than there are processors: they wait for most of the time.
type abreast struct {
	t     *testing.T
	all   sync.WaitGroup
	slots chan struct{}
}

func newAbreast(t *testing.T) *abreast {
	t.Helper()
	return &abreast{t: t, slots: make(chan struct{}, 4)}
}

func (a *abreast) run(name string, test func(*testing.T)) {
	a.all.Go(func() {
		a.slots <- struct{}{}
		defer func() { <-a.slots }()
		a.t.Run(name, test)
	})
}

func (a *abreast) wait() { a.all.Wait() }
