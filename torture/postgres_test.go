//go:build linux || darwin

package torture

import (
	"cmp"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/torture/internal/worker"
)

// A storm over a PostgreSQL by each technique, whose clock is hours behind those of the clients:
// its processes are stopped, it is killed and starts again, backends are ended, its connections are
// taken by others, links stall. And with a standby that takes the place of a primary: what has all
// that was committed loses nothing, what has not may, but no token comes twice.
func TestStormOverPostgres(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm: make proof")
	}
	length := stormLength(t)
	for _, c := range []struct {
		start  string
		faults []string
		excuse []string
	}{
		{Postgres, nil, nil},
		{Postgres + "?pool_max_conns=2", []string{FaultLink, FaultPause, FaultRestart}, nil},
		{Postgres + "?technique=session", nil, []string{"V3", "V4"}},
		{Postgres + "?technique=session", []string{FaultPause, FaultExhaust}, nil},
		{Postgres + "?technique=rowlock", nil, []string{"V3", "V4"}},
		{Postgres + "?technique=rowlock", []string{FaultPause, FaultExhaust}, nil},
		{PostgresSync, nil, nil},
		{PostgresSync + "?technique=session", nil, []string{"V3", "V4"}},
		{PostgresAsync, nil, []string{"V3", "V4"}},
		{PostgresAsync + "?technique=session", nil, []string{"V3", "V4"}},
		{PostgresPooler, nil, nil},
	} {
		name := c.start
		if c.faults != nil {
			name += " " + strings.Join(c.faults, " ")
		}
		t.Run(name, func(t *testing.T) {
			trial := stormOver(t, Config{Start: c.start, Faults: c.faults, TTL: 600 * time.Millisecond, Processes: 6, Goroutines: 2, Names: 4, want: enough}, "", length)
			withstood(t, trial, c.excuse)
		})
	}
}

const (
	lengthVariable = "INTERLOCK_STORM" // how long a storm goes on
	// if it is set the grace in storms is the default of locks, a tenth of the TTL
	graceVariable    = "INTERLOCK_GRACE"
	handoffsVariable = "INTERLOCK_HANDOFFS" // how many there are to be
)

// graced has the grace that this run asks for.
func graced(c Config) Config {
	c.tenth = os.Getenv(graceVariable) != ""
	return c
}

// stormLength is how long a storm goes on here.
func stormLength(t *testing.T) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(cmp.Or(os.Getenv(lengthVariable), "6s"))
	if err != nil {
		t.Fatalf("%s: %v", lengthVariable, err)
	}
	return d
}

// The lock goes from one process to another again and again, by each technique and in transactions:
// no two hold it, no token is out of order, nothing is lost. The real numbers, 300,000 by rows and
// session, are parts of make proof.
func TestHandoffsOfPostgres(t *testing.T) {
	for _, c := range []struct{ name, query, tx string }{
		{"rows", "?technique=rows", ""},
		{"session", "?technique=session", ""},
		{"rowlock", "?technique=rowlock", ""},
		{"intx", "", worker.ByRow},
		{"intx-advisory", "", worker.ByAdvisory},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			handOver(t, Config{Start: Postgres + c.query, tx: c.tx})
		})
	}
}

// handOver has the lock go from one process to another so often as the proof asks for.
func handOver(t *testing.T, c Config) {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(handoffsVariable), "100"))
	if err != nil {
		t.Fatalf("%s: %v", handoffsVariable, err)
	}
	c.Scenarios, c.For, c.Handoffs, c.patient, c.Processes, c.Goroutines = []string{Handoffs}, 200*time.Millisecond, n, true, 4, 1
	if c.Fairness = cmp.Or(c.Fairness, 0.5); c.tx != "" || n < 1000 {
		// nobody promises anything, or some processes began when the others were nearly done
		c.Fairness = 0.01
	}
	if got := torment(t, c)[0].Figure("handoffs"); got < float64(n) {
		t.Errorf("%v handoffs, want %d", got, n)
	}
}
