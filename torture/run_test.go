//go:build linux || darwin

package torture

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/interlock-go/interlock/filelock"
	_ "github.com/interlock-go/interlock/memlock"
	_ "github.com/interlock-go/interlock/redislock"
	_ "github.com/interlock-go/interlock/redissonlock"
	_ "github.com/interlock-go/interlock/redlock"
	_ "github.com/interlock-go/interlock/zklock"
)

const clockVariable = "INTERLOCK_TORTURE_CLOCK"

func TestMain(m *testing.M) {
	Main()
	if os.Getenv(clockVariable) != "" { // a process of TestOneClock
		fmt.Println(int64(now()))
		os.Exit(0)
	}
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

// torment runs a short version of a scenario and returns its trials, of which everything is as it must be.
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

// Who was told when is a margin in time, for make proof: in the core's tests, in virtual time, it is an order.
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

// The real number, 10,000 handoffs in ten seconds, is for a run with nothing else on the machine. Here it is one that a
// store misses only if every handoff waits for a timer, also under the race detector.
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

// mem: is another store in every process, so it is a lock that does not lock. Whoever tortures it must hear that.
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

// One clock for all processes: what another process reads lies between two readings here.
func TestOneClock(t *testing.T) {
	for range 3 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), clockVariable+"=1")
		before := now()
		out, err := cmd.Output()
		after := now()
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if instant(n) < before || instant(n) > after {
			t.Errorf("another process reads %d, which is not between %d and %d", n, before, after)
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
	t.Setenv(workerVariable, "1")
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

// A worker whose conductor dies without a word does not live on.
func TestWorkerEndsWithItsConductor(t *testing.T) {
	dir := t.TempDir()
	text := fmt.Sprintf(`{"Task":"storm","Store":%q,"TTL":1000000000,"Grace":100000000,"Diary":%q,"Names":["a"],"Files":[%q],"Count":1,"Guard":"fenced"}`+"\n",
		fileStore(t), filepath.Join(dir, "diary"), filepath.Join(dir, "number"))
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), workerVariable+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, text); err != nil {
		t.Fatal(err)
	}
	d, err := openDiary(filepath.Join(dir, "diary"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	d.head.end.Store(int64(now().add(time.Hour)))
	for deadline := time.Now().Add(30 * time.Second); d.head.grants.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the worker does not work")
		}
	}
	in.Close()
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("the worker ended with %v, want status 3", err)
	}
}

// What is no job is an error, not a worker that does nothing.
func TestWorkWantsAJob(t *testing.T) {
	for _, text := range []string{"x\n", `{"Task":"dance","Diary":"` + filepath.Join(t.TempDir(), "diary") + `"}` + "\n"} {
		if err := work(bufio.NewReader(io.MultiReader(strings.NewReader(text), forever{}))); err == nil {
			t.Errorf("%q is taken for a job", text)
		}
	}
}

// forever is an input that says nothing and does not end.
type forever struct{}

func (forever) Read([]byte) (int, error) { select {} }
