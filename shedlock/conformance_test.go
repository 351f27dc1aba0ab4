package shedlock_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // the client
	_ "github.com/jackc/pgx/v5/stdlib" // the client pgx

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/driver/drivertest/links"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/worker"
	_ "github.com/interlock-go/interlock/shedlock"
)

func TestMain(m *testing.M) {
	worker.Work()
	m.Run()
}

// database is a server that has ShedLock's table, and a client beside those of the drivers.
type database struct {
	*servertest.Server
	*sql.DB
	postgres bool
}

// The tables as ShedLock's pages have them.
const (
	tableOfPostgres = "CREATE TABLE shedlock(name VARCHAR(64) NOT NULL, lock_until TIMESTAMP NOT NULL, locked_at TIMESTAMP NOT NULL, locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name))"
	tableOfMariaDB  = "CREATE TABLE shedlock(name VARCHAR(64) NOT NULL, lock_until TIMESTAMP(3) NOT NULL, locked_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name))"
)

func onPostgres(t drivertest.T, args ...string) *database {
	t.Helper()
	return overPostgres(t, servertest.Postgres(tb{t}, append([]string{"-c", "fsync=on"}, args...)...))
}

func overPostgres(t drivertest.T, s *servertest.Server) *database {
	t.Helper()
	db, err := sql.Open("pgx", s.URL())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return made(t, &database{s, db, true}, tableOfPostgres)
}

func onMariaDB(t drivertest.T, args ...string) *database {
	t.Helper()
	return overMariaDB(t, servertest.MariaDB(tb{t}, args...))
}

func overMariaDB(t drivertest.T, s *servertest.Server) *database {
	t.Helper()
	// Clients of Java count the rows that a statement has found: one that is renewed twice within a millisecond, too.
	db, err := sql.Open("mysql", "root@tcp("+s.Addr()+")/test?autocommit=1&clientFoundRows=true")
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return made(t, &database{s, db, false}, tableOfMariaDB)
}

// tb is a test as servertest knows it.
type tb struct{ drivertest.T }

func (t tb) Fatal(args ...any) { t.Helper(); t.Fatalf("%s", fmt.Sprint(args...)) }

func made(t drivertest.T, s *database, table string) *database {
	t.Helper()
	t.Cleanup(func() { _ = s.DB.Close() })
	s.must(t, table)
	return s
}

// must makes a statement.
func (s *database) must(t drivertest.T, statement string, args ...any) (rows int64) {
	t.Helper()
	r, err := s.ExecContext(context.Background(), statement, args...)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	rows, err = r.RowsAffected()
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return rows
}

// url is the store's, at the server or at a wire to it.
func (s *database) url(addr string) string {
	return "shedlock+" + strings.Replace(s.URL(), s.Addr(), addr, 1)
}

// opening starts a database.
type opening func(t drivertest.T, args ...string) *database

// both runs a test on either database.
func both(t *testing.T, f func(t *testing.T, on opening)) {
	t.Helper()
	t.Parallel()
	t.Run("postgres", func(t *testing.T) { t.Parallel(); f(t, onPostgres) })
	t.Run("mariadb", func(t *testing.T) { t.Parallel(); f(t, onMariaDB) })
}

func TestConformance(t *testing.T) {
	both(t, func(t *testing.T, on opening) {
		s := on(t)
		if s.postgres {
			s.must(t, strings.NewReplacer("shedlock", "suite", "64", "1024").Replace(tableOfPostgres))
			drivertest.Run(t, func(*testing.T) drivertest.Harness { return newHarness(s) })
			return
		}
		// No key of InnoDB has 1,024 characters, and a collation folds: TestNamesAreKeptOrRefused.
		laws := slices.DeleteFunc(drivertest.Laws(), func(l drivertest.Law) bool { return l.Name == "Law09_Names" })
		drivertest.Run(t, func(*testing.T) drivertest.Harness { return newHarness(s) }, laws...)
	})
}

// harness is a database for the conformance suite. Each driver is over a wire of its own.
type harness struct {
	*links.Links
	s      *database
	prefix string
}

var harnesses atomic.Int64

func newHarness(s *database) *harness {
	h := &harness{Links: links.New(), s: s, prefix: fmt.Sprintf("suite/%d/", harnesses.Add(1))}
	h.Request = func(p []byte) bool {
		if s.postgres {
			return bytes.IndexByte([]byte("QPB"), p[0]) >= 0 && p[1] == 0 && !bytes.Contains(p, []byte("-- ping"))
		}
		return len(p) > 8 && p[3] == 0 && p[4] == 3 && !bytes.HasPrefix(p[5:], []byte("SET ")) // a query, but for those of a new connection
	}
	return h
}

// unseen is a driver without its looks: see Cannot.
type unseen struct{ driver.Driver }

func (h *harness) url(addr string) string {
	if h.s.postgres {
		return h.s.url(addr) + "&table=suite"
	}
	return h.s.url(addr)
}

func (h *harness) Driver(t drivertest.T) driver.Driver {
	t.Helper()
	w := h.Lay(t, h.s.Addr())
	d, err := driver.OpenURL(context.Background(), h.url(w.Addr()))
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	h.Belong(unseen{d}, w)
	return unseen{d}
}

func (h *harness) Prefix() string     { return h.prefix }
func (h *harness) TTL() time.Duration { return time.Second }

// Budget: a name that is new costs the attempt, a look, and the row. A handoff is the release, the look that finds it and the attempt; and a look that
// was under way.
func (h *harness) Budget() drivertest.Budget {
	return drivertest.Budget{Acquire: 3, Release: 1, Handoff: 4}
}

func (h *harness) Restart(t drivertest.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := h.s.Server.Restart(ctx); err != nil {
		t.Fatalf("restart: %v", err)
	}
}

func (h *harness) Freeze(t drivertest.T, name string) (thaw func()) {
	t.Helper()
	w := worker.Start(t, h.url(h.s.Addr()), name, h.TTL())
	w.Stop(t)
	return w.Kill
}

func (h *harness) Cannot(law string) string {
	switch law {
	case "Law15_Break", "Also_Inspector", "Also_Shown", "Also_Watch":
		return "the table shows who holds and nobody who waits, and has no room for marks and notes: its looks have tests of their own"
	case "Also_Loss":
		return "claims have times of their own: the store ends no session"
	}
	return ""
}
