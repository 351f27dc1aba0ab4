//go:build linux || darwin

package torture

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// runsVariable is how often each lock with a flaw is to be convicted; default once. Ten are for a
// run by hand:
//
//	INTERLOCK_FLAWED_RUNS=10 go test -run TestFlawedLocksAreConvicted -timeout 1h -v ./torture
const runsVariable = "INTERLOCK_FLAWED_RUNS"

// Each lock with a flaw is convicted by the check that its flaw breaks, and the correct lock is not
// under the same faults.
func TestFlawedLocksAreConvicted(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm for each flawed lock: make proof")
	}
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

// abreast runs several subtests at once, more than there are processors where the machine bears
// that: they wait for most of the time.
type abreast struct {
	t     *testing.T
	all   sync.WaitGroup
	slots chan struct{}
}

func newAbreast(t *testing.T) *abreast {
	t.Helper()
	return &abreast{t: t, slots: make(chan struct{}, room())}
}

// room returns how many subtests this machine bears at once: four, or fewer where a process gets
// only a part of a core. Each has dozens of goroutines with leases of 300 ms, and processes that do
// not run show nothing.
func room() int {
	spent := func() time.Duration {
		var u unix.Rusage
		_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	from, before := time.Now(), spent()
	for time.Since(from) < 200*time.Millisecond {
		continue
	}
	share := float64(spent()-before) / float64(time.Since(from))
	return max(1, min(4, int(4*share+0.5)))
}

func (a *abreast) run(name string, test func(*testing.T)) {
	a.all.Go(func() {
		a.slots <- struct{}{}
		defer func() { <-a.slots }()
		a.t.Run(name, test)
	})
}

func (a *abreast) wait() { a.all.Wait() }
