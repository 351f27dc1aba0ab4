package mysqllock_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
	"github.com/interlock-go/interlock/mysqllock"
)

// over is a driver over one connection, which the program has set up so.
func over(t *testing.T, s *servertest.Server, change func(*mysql.Config)) (driver.Driver, *sql.DB) {
	t.Helper()
	c, _, err := mysqllock.ParseURL(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	change(c)
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	d, err := mysqllock.New(t.Context(), db, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d, db
}

// with is a session over such a connection.
func with(t *testing.T, s *servertest.Server, change func(*mysql.Config)) (driver.Session, *sql.DB) {
	t.Helper()
	d, db := over(t, s, change)
	a, err := session(t, d, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return a, db
}

// state is what a program may have set of the only connection of a pool.
func state(t *testing.T, db *sql.DB) (all string) {
	t.Helper()
	const query = "select concat_ws('|', @@sql_mode, @@autocommit, @@tx_isolation, @@innodb_lock_wait_timeout, @@time_zone, @@in_transaction, connection_id())"
	if err := db.QueryRowContext(t.Context(), query).Scan(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestS09_ClocksOfClientsDoNotCount(t *testing.T) {
	t.Parallel()
	s, err := servertest.StartMariaDB(t.Context(), servertest.Options{Clock: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := mysqllock.Migrate(t.Context(), pool(t, s.URL()), nil); err != nil {
		t.Fatal(err)
	}
	storetest.ClockIsOff(t, s)
}

// A request that has waited for the row of a line reads the time when it has it, and so writes an
// end that is not over earlier.
func TestS11_TheTimeIsReadWhereItIsWritten(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	a := user(t, s.URL())
	first := mutex("written")
	asks(t, a, first, true)
	leaves(t, a, first, true)
	execute(t, s, "update interlock_session set valid_until = "+now+" + ttl div 2") // so that the next request renews
	tx, err := pool(t, s.URL()).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), "update interlock_lock set fence = fence + 1"); err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() { _, err := a.Acquire(t.Context(), mutex("written")); got <- err }()
	until(t, "the request waits for the row", func() bool {
		return ask[int](t, s, "select variable_value from information_schema.global_status where variable_name = 'innodb_row_lock_current_waits'") == 1
	})
	free := ask[int64](t, s, "select "+now)
	if err := errors.Join(tx.Commit(), <-got); err != nil {
		t.Fatal(err)
	}
	if early := free - ask[int64](t, s, "select valid_until - ttl from interlock_session"); early > 0 {
		t.Errorf("renewed until %d µs before its time, counted from when it was written", early)
	}
}

// What the program has locked by GET_LOCK on a connection of its pool stays so: before MySQL 5.7
// the next GET_LOCK there would end it.
func TestS13_LocksOfTheProgramStay(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	a, db := with(t, s, func(*mysql.Config) {})
	var got int
	if err := db.QueryRowContext(t.Context(), "select get_lock('mine', 0)").Scan(&got); err != nil || got != 1 {
		t.Fatal(got, err)
	}
	cycle(t, user(t, s.URL()), a)
	if err := db.QueryRowContext(t.Context(), "select coalesce(is_used_lock('mine') = connection_id(), 0)").Scan(&got); err != nil || got != 1 {
		t.Errorf("the lock that the program has by GET_LOCK is gone, %v", err)
	}
}

// Two names are one lock if they are the same bytes, and only then: neither case, accents, blanks
// at the end nor length bring two together.
func TestS14_NamesAreBytes(t *testing.T) {
	t.Parallel()
	s := servertest.MariaDB(t, "--character-set-server=latin1", "--lower-case-table-names=1")
	if err := mysqllock.Migrate(t.Context(), pool(t, s.URL()), nil); err != nil {
		t.Fatal(err)
	}
	a, b := user(t, s.URL()), user(t, s.URL())
	piece := rapid.SampledFrom([]string{"a", "A", "ä", "Ä", "ß", "ss", " ", "\x00", "\xff", "%", "_", "'", strings.Repeat("x", 64), strings.Repeat("X", 64)})
	name := rapid.Map(rapid.SliceOfN(piece, 1, 4), func(all []string) string { return strings.Join(all, "") })
	rapid.Check(t, func(r *rapid.T) {
		one := name.Draw(r, "one")
		two := rapid.OneOf(name, rapid.Just(one), rapid.Just(strings.ToLower(one)), rapid.Just(one+" ")).Draw(r, "two")
		mine, next := tries(one), tries(two)
		if g, err := a.Acquire(t.Context(), mine); err != nil || !g.Held {
			r.Fatalf("%q: held %v, %v", one, g.Held, err)
		}
		g, err := b.Acquire(t.Context(), next)
		if err != nil || g.Held != (one != two) {
			r.Errorf("%q beside %q: held %v, %v; want %v", two, one, g.Held, err, one != two)
		}
		for u, c := range map[driver.Session]driver.Claim{a: mine, b: next} {
			if _, err := u.Release(t.Context(), c); err != nil {
				r.Fatal(err)
			}
		}
	})
}

// How many rows an UPDATE is said to have met depends on the client: those that are there, or those
// that differ from before. So what writes what stood there already is no loss: here two renewals in
// the same microsecond.
func TestS24_WhatStoodThereAlready(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for _, found := range []bool{false, true} {
		a, _ := with(t, s, func(c *mysql.Config) {
			c.ClientFoundRows, c.Params = found, map[string]string{"timestamp": "unix_timestamp()"} // the clock of the connection stands still
		})
		c := mutex("again")
		asks(t, a, c, true)
		for i := range 3 {
			if r, err := a.Renew(t.Context()); err != nil || len(r.Lost) != 0 {
				t.Errorf("renewal %d where the rows found are counted, %v: %+v, %v; want that the claim is held", i, found, r, err)
			}
		}
		leaves(t, a, c, true)
	}
}
