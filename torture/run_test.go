//go:build linux || darwin

package torture

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/interlock-go/interlock/filelock"
	_ "github.com/interlock-go/interlock/memlock"
	_ "github.com/interlock-go/interlock/redislock"
	_ "github.com/interlock-go/interlock/redissonlock"
	_ "github.com/interlock-go/interlock/redlock"
	"github.com/interlock-go/interlock/torture/internal/worker"
	_ "github.com/interlock-go/interlock/zklock"
)

func TestMain(m *testing.M) {
	worker.Main()
	// The race detector makes every process wait for a second at its end; there are hundreds here.
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	os.Exit(m.Run())
}

// fileStore is a store of its own in the embedded one.
func fileStore(t *testing.T) string {
	t.Helper()
	u := url.URL{Scheme: "file", Path: filepath.Join(t.TempDir(), "locks")}
	return u.String()
}

// progress shows what a run says.
type progress struct{ t *testing.T }

func (p progress) Write(b []byte) (int, error) {
	p.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

// torment runs a short version of a scenario and returns its trials, of which everything is as it
// must be.
func torment(t *testing.T, cfg Config) []Trial {
	t.Helper()
	if cfg.Store == "" && cfg.Start == "" && len(cfg.Flawed) == 0 {
		cfg.Store = fileStore(t)
	}
	r, err := Run(t.Context(), graced(cfg), progress{t})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := r.Print(&b); err != nil {
		t.Fatal(err)
	}
	t.Log(b.String())
	switch err := r.Err(); {
	case errors.Is(err, ErrConvicted), errors.Is(err, ErrBroken):
		t.Error(err)
	case err != nil:
		t.Errorf("the store was not judged: %v", err)
	}
	return r.Trials
}

// figures wants at least so much of each.
func figures(least map[string]float64) func(Trial) bool {
	return func(t Trial) bool {
		for name, n := range least {
			if t.Figure(name) < n {
				return false
			}
		}
		return true
	}
}

// Who was told when is a margin in time, for make proof: in the core's tests, in virtual time, it
// is an order.
func TestStorm(t *testing.T) {
	twins, length := 3, 4*time.Second
	if testing.Short() {
		twins = 2
		t.Parallel()
	} else {
		length = stormLength(t)
	}
	trials := torment(t, Config{For: length, Processes: 6, Goroutines: 4, Names: 6, untimed: testing.Short(), want: figures(map[string]float64{
		"kills": 1, "stops": 1, "refused writes": 1,
	})})
	if len(trials) != 1+twins {
		t.Fatalf("%d trials, want the scenario and %d twins", len(trials), twins)
	}
	if n := trials[0].Figure("kills"); n < 1 {
		t.Errorf("%v workers were killed, want some", n)
	}
	if n := trials[0].Figure("stops"); n < 1 {
		t.Errorf("%v workers were stopped, want some", n)
	}
	if n := trials[0].Figure("refused writes"); n < 1 {
		t.Errorf("the guard refused %v writes, want some: nobody wrote late", n)
	}
}

// The real number, 10,000 handoffs in ten seconds, is for a run with nothing else on the machine.
// Here it is one that a store misses only if every handoff waits for a timer, also under the race
// detector.
func TestHandoffs(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm: make proof")
	}
	torment(t, Config{Scenarios: []string{Handoffs}, For: 2 * time.Second, Handoffs: 200, Fairness: 0.9})
}

func TestKills(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm: make proof")
	}
	t.Parallel()
	trials := torment(t, Config{Scenarios: []string{Kills}, For: 2 * time.Second, want: figures(map[string]float64{"kills": 3})})
	if n := trials[0].Figure("kills"); n < 3 {
		t.Errorf("%v workers were killed, want 3 at least", n)
	}
}

func TestTurns(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm: make proof")
	}
	torment(t, Config{Scenarios: []string{Turns}, For: 2 * time.Second})
}

// The real number is 1,000 cases, which take half a minute.
func TestNotice(t *testing.T) {
	if testing.Short() {
		t.Skip("a margin in time: make proof")
	}
	trials := torment(t, Config{Scenarios: []string{Notice}, For: 4 * time.Second, want: func(t Trial) bool {
		return t.check("V4").Cases >= 50
	}})
	if c := trials[0].check("V4"); c.Cases < 50 {
		t.Errorf("%d holders lost their leases, want 50 at least", c.Cases)
	}
}

// mem: is another store in every process, so it is a lock that does not lock. Whoever tortures it
// must hear that.
func TestBrokenStoreIsConvicted(t *testing.T) {
	for _, scenario := range []string{Storm, Handoffs} {
		r, err := Run(t.Context(), Config{Store: "mem:", Scenarios: []string{scenario}, For: time.Second, Processes: 2, Goroutines: 2, Names: 1}, progress{t})
		if err != nil {
			t.Fatal(err)
		}
		if !errors.Is(r.Err(), ErrConvicted) {
			t.Errorf("%s: a lock that does not lock: got %v, want ErrConvicted", scenario, r.Err())
		}
		if c := r.Trials[0].check("V3"); c.Violations == 0 {
			t.Errorf("%s: V3 has seen no overlap in %d cases", scenario, c.Cases)
		}
		if scenario == Storm && len(r.Trials[0].check("V3").Stories) == 0 {
			t.Errorf("%s: nobody tells how it came about", scenario)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  Config
		want string
	}{
		"an unknown store":       {Config{Store: "nowhere:x"}, "unknown scheme"},
		"a TTL below the least":  {Config{Store: fileStore(t), TTL: time.Millisecond, For: time.Second}, "TTL of 1ms"},
		"a worker without a job": {Config{Store: fileStore(t), Processes: -1}, "want 2 processes or more"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Run(t.Context(), c.cfg, nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
	t.Setenv(worker.Variable, "1")
	if _, err := Run(t.Context(), Config{Store: "mem:"}, nil); err == nil || !strings.Contains(err.Error(), "torture.Main") {
		t.Errorf("a worker that does not know it: got %v, want that main must call torture.Main", err)
	}
}

// A run that is given up leaves no process behind.
func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	began := time.Now()
	_, err := Run(ctx, Config{Store: fileStore(t), For: time.Minute, Processes: 3}, nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("took %v to give up", took)
	}
}
