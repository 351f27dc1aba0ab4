package pglock_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
	"github.com/interlock-go/interlock/internal/worker"
	"github.com/interlock-go/interlock/pglock"
)

func TestMain(m *testing.M) {
	worker.Work()
	m.Run()
}

// The laws are tried on two servers at once: some of them restart theirs.
func TestConformance(t *testing.T) { tryThese(t, drivertest.Laws()[:9]) }

func TestConformanceFromLaw10(t *testing.T) { tryThese(t, drivertest.Laws()[9:]) }

func tryThese(t *testing.T, laws []drivertest.Law) {
	t.Helper()
	t.Parallel()
	s := migrated(t, "-c", "fsync=on")
	drivertest.Run(t, func(*testing.T) drivertest.Harness { return newHarness(s) }, laws...)
}

// harness is a server for the conformance suite.
type harness struct {
	*storetest.Harness
	server *servertest.Server
}

// newHarness is for technique rows, changed as a test wants it.
func newHarness(s *servertest.Server, changes ...func(*storetest.Store)) harness {
	of := storetest.Store{
		Server: s, URL: s.URL(), TTL: usual(), Request: asked, Budget: drivertest.Budget{Acquire: 1, Release: 1, Handoff: 1},
		Notice: func(p []byte) bool { return p[0] == 'A' }, // what comes by LISTEN, over a connection of its own
	}
	for _, change := range changes {
		change(&of)
	}
	return harness{storetest.NewHarness(of), s}
}

// usual is the time of a session: a second, and two beside other packages. For Law08_Expiry some
// two hundred pools connect at once, which takes seconds there, and what came too late is void and
// costs another trial.
func usual() time.Duration {
	if testing.Short() {
		return 2 * time.Second
	}
	return time.Second
}

// asked tells queries, those of what is prepared too. Each begins a packet: a connection has one
// under way. After the letter comes a length, whose first byte tells it from the rest of a long
// one.
func asked(p []byte) bool {
	return bytes.IndexByte([]byte("QPB"), p[0]) >= 0 && p[1] == 0 && !bytes.Contains(p, []byte("-- ping"))
}

// End ends a session as an operator does.
func (h harness) End(t drivertest.T, _ driver.Driver, s driver.Spec) {
	t.Helper()
	p := pool(t, h.server.URL())
	if _, err := p.Exec(context.Background(), "select interlock.finish($1)", s.ID); err != nil {
		t.Fatalf("end: %v", err)
	}
}

// migrated starts a server that has the tables.
func migrated(t *testing.T, args ...string) *servertest.Server {
	t.Helper()
	s := servertest.Postgres(t, args...)
	if err := pglock.Migrate(t.Context(), pool(t, s.URL()), nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// pool is the user's own.
func pool(t drivertest.T, url string) *pgxpool.Pool {
	t.Helper()
	p, err := pgxpool.New(context.Background(), url)
	if err != nil {
		t.Fatalf("pool: %v", err)
	}
	t.Cleanup(p.Close)
	return p
}
