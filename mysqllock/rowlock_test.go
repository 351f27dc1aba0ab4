package mysqllock_test

import (
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
	"github.com/interlock-go/interlock/mysqllock"
)

func byRow(s *servertest.Server) string { return s.URL() + "?technique=rowlock" }

// Beside what a session sends there is a statement that looks for the row, one that makes it for a
// new name, and one that draws the token.
func TestConformanceOfRowlock(t *testing.T) {
	t.Parallel()
	laws := slices.DeleteFunc(storetest.InShort("Law03_OneSession", "Law05_Tokens", "Law08_Expiry", "Also_Parallel"), func(l drivertest.Law) bool {
		return l.Name == "Law11_NoOvertaking" // MariaDB lets them in as they come, and nothing promises it
	})
	conforms(t, migrated(t, "--max-connections=700"), "rowlock", drivertest.Budget{Acquire: 4, Release: 1, Handoff: 2}, laws)
}

// In a table of three rows, where the optimiser may find it cheaper to read all than to use an
// index, the row of a name is found by the primary key, and no lock of one name keeps anybody from
// another one.
func TestRowlocksOfASmallTable(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"MariaDB", "MySQL"} {
		s := migratedAs(t, form)
		execute(t, s, "insert into interlock_held values ('a', 0), ('b', 0), ('c', 0)", "analyze table interlock_held")
		db := pool(t, s.URL())
		for _, how := range []string{"for update", "for update skip locked"} {
			var id, kind, table, access, keys, key, length, ref, n, extra sql.NullString
			row := db.QueryRowContext(t.Context(), "explain select turns from interlock_held where name = x'62' "+how)
			if err := row.Scan(&id, &kind, &table, &access, &keys, &key, &length, &ref, &n, &extra); err != nil {
				t.Fatal(err)
			}
			if access.String != "const" || key.String != "PRIMARY" || n.String != "1" {
				t.Errorf("%s reads the row by %s of %s, %s rows; want const of PRIMARY, 1 row", how, access.String, key.String, n.String)
			}
		}
		users := map[string]driver.Session{}
		claims := map[string]driver.Claim{}
		for _, name := range []string{"a", "b", "c", "0", "aa", "z"} {
			users[name], claims[name] = user(t, byRow(s)), tries(name)
			asks(t, users[name], claims[name], true)
		}
		for _, name := range []string{"b0", "zz"} {
			tx := begins(t, db, sql.LevelSerializable)
			inTx(t, tx, "set innodb_lock_wait_timeout = 10")
			if _, err := mysqllock.InTx(t.Context(), tx, name, nil); err != nil {
				t.Errorf("%s: a transaction locks %q beside locks of other names: %v", form, name, err)
			}
		}
		for name, u := range users {
			leaves(t, u, claims[name], true)
		}
	}
}

// A program's transaction has made the row of a name and has not ended: it has the lock. Whatever
// it does then, who waits has it next.
func TestS12_ANameInTheMaking(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"MariaDB", "MySQL"} {
		s := migratedAs(t, form)
		db, a := pool(t, s.URL()), user(t, byRow(s))
		for _, end := range []string{"commit", "rollback"} {
			name := end
			tx := begins(t, db, sql.LevelDefault)
			if _, err := mysqllock.InTx(t.Context(), tx, name, nil); err != nil {
				t.Fatal(err)
			}
			next := mutex(name)
			asks(t, a, next, false)
			inTx(t, tx, end)
			if g := awaits(t, a, next); g.Fence == 0 {
				t.Errorf("%s: token %d", name, g.Fence)
			}
			other := begins(t, db, sql.LevelDefault)
			inTx(t, other, "set innodb_lock_wait_timeout = 0")
			if _, err := mysqllock.InTx(t.Context(), other, name, nil); number(err) != 1205 {
				t.Errorf("%s: a transaction beside a lease: %v; want a timeout", name, err)
			}
			inTx(t, other, "set innodb_lock_wait_timeout = 30")
			_ = other.Rollback()
			leaves(t, a, next, true)
		}
	}
}

// What a row lock has not is refused, or said.
func TestBadInputOfRowlock(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	d, err := driver.OpenURL(t.Context(), byRow(s))
	if err != nil {
		t.Fatal(err)
	}
	a, err := session(t, d, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if d.Traits().Ordered {
		t.Error("row locks promise order")
	}
	if _, err := d.(driver.Inspector).Line(t.Context(), "shared"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Line: %v", err)
	}
	permit, long := mutex("shared"), mutex(strings.Repeat("x", 1025))
	permit.Kind, permit.Weight, permit.Limit = driver.Permit, 1, 2
	for want, c := range map[string]driver.Claim{"use technique rows": permit, "want 1 to 1024": long} {
		if _, err := a.Acquire(t.Context(), c); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	if _, err := mysqllock.New(t.Context(), pool(t, s.URL()), &mysqllock.Options{Technique: "rowlock"}); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "NewConnector") {
		t.Errorf("over a pool of the program's: %v", err)
	}
}

// Which way of locking excludes which: the table of the backend's page.
func TestWhatExcludesWhat(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	db := pool(t, s.URL())
	storetest.Exclude(t, "../docs/backends/mysql.md", []storetest.Way{
		{Name: "rows", Take: storetest.Lease(s.URL()), With: "rows"},
		{Name: "session", Take: storetest.Lease(bySession(s)), With: "session"},
		{Name: "rowlock", Take: storetest.Lease(byRow(s)), With: "rowlock, InTx"},
		{Name: "InTx", Take: func(t *testing.T) (bool, func()) {
			t.Helper()
			tx := begins(t, db, sql.LevelDefault)
			inTx(t, tx, "set innodb_lock_wait_timeout = 0")
			_, err := mysqllock.InTx(t.Context(), tx, "table", nil)
			if err != nil && number(err) != 1205 {
				t.Fatal(err)
			}
			return err == nil, func() { _ = tx.Rollback() }
		}, With: "rowlock, InTx"},
	})
}
