package mysqllock_test

import (
	"context"
	"database/sql"
	"regexp"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
	"github.com/interlock-go/interlock/internal/worker"
	"github.com/interlock-go/interlock/mysqllock"
)

func TestMain(m *testing.M) {
	worker.Work()
	m.Run()
}

func TestConformance(t *testing.T) { rowsConform(t, drivertest.Laws()[:7]) }

// The other laws are tried beside those, on a server of their own, which they restart. Both mostly
// wait.
func TestConformanceToTheOthers(t *testing.T) { rowsConform(t, drivertest.Laws()[7:]) }

func rowsConform(t *testing.T, laws []drivertest.Law) {
	t.Helper()
	t.Parallel()
	s := migrated(t)
	drivertest.Run(t, func(*testing.T) drivertest.Harness { return newHarness(s, s.URL()) }, laws...)
}

// harness is a server for the conformance suite, and technique rows.
type harness struct {
	*storetest.Harness
	url string
}

// newHarness is one on a server at url. A handoff opens a gate, and locks new ones now and then; of
// permits, where who waits polls, a look may be under way, and a slow release lets some pass.
func newHarness(s storetest.Server, url string) harness {
	return harness{storetest.NewHarness(storetest.Store{
		Server: s, URL: url, Request: asked, Notice: opened.Match, Budget: drivertest.Budget{Acquire: 1, Release: 1, Handoff: 6},
	}), url}
}

// asked tells queries. Each begins a packet, since a connection has one under way: its length in
// three bytes, the number 0, and what it is.
func asked(p []byte) bool { return len(p) > 4 && p[3] == 0 && p[4] == 3 }

// opened is what a claim is told behind a gate that is open.
var opened = regexp.MustCompile(`2 \d{16} -1 f [\w-]{22}`)

// End ends a session as an operator does.
func (h harness) End(t drivertest.T, _ driver.Driver, s driver.Spec) {
	t.Helper()
	if _, err := pool(t, h.url).ExecContext(context.Background(), "call interlock_finish('"+s.ID+"', null)"); err != nil {
		t.Fatalf("end: %v", err)
	}
}

// migrated starts a server that has the tables.
func migrated(t *testing.T, args ...string) *servertest.Server {
	t.Helper()
	s := servertest.MariaDB(t, args...)
	if err := mysqllock.Migrate(t.Context(), pool(t, s.URL()), nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// pool is the user's own.
func pool(t drivertest.T, url string) *sql.DB {
	t.Helper()
	c, _, err := mysqllock.ParseURL(url)
	if err != nil {
		t.Fatalf("%v", err)
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatalf("%v", err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}
