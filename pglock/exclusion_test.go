package pglock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
	"github.com/interlock-go/interlock/pglock"
)

// byHand is a program that takes locks in plain SQL.
func byHand(t *testing.T, s *servertest.Server) func(sql string) bool {
	t.Helper()
	conn := connect(t, s)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return func(sql string) (got bool) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), sql, pgx.QueryExecModeSimpleProtocol).Scan(&got); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return got
	}
}

// A lock that is taken by hand under the key of a convention excludes ours and is excluded by it,
// and so does one in a transaction.
func TestForeignKeys(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for _, c := range []struct{ keys, name, key string }{
		{"with_advisory_lock", "foo", "208889121, 0"},
		{"django", "foo", "-1938594527"},
		{"symfony", "foo", "2356372769"},
		{"dotnet", "foo", "-843088897, -1"},
		{"dotnet", "a-rather-long-lock-name", "-4523304115101190793"},
		{"dotnet", "00000000000000ff", "255"},
		{"dotnet", "00000001,ffffffff", "1, -1"},
		{"tooz", "foo", "172, 189"},
		{"number", "-9223372036854775808", "-9223372036854775808"},
		{"number", "7,-8", "7, -8"},
		{"interlock", "foo", "154406090734915749"},
	} {
		t.Run(c.keys+"/"+c.name, func(t *testing.T) {
			a, theirs := user(t, bySession(s, "keys="+c.keys)), byHand(t, s)
			for _, mode := range []string{"", "_shared"} {
				if !theirs("select pg_try_advisory_lock" + mode + "(" + c.key + ")") {
					t.Fatalf("key (%s) is not free", c.key)
				}
				mine := mutex(c.name)
				asks(t, a, mine, false)
				theirs("select pg_advisory_unlock" + mode + "(" + c.key + ")")
				if g := awaits(t, a, mine); g.Fence == 0 {
					t.Error("no token")
				}
				if theirs("select pg_try_advisory_lock" + mode + "(" + c.key + ")") {
					t.Errorf("key (%s) is not excluded by ours", c.key)
				}
				tx, err := clients["pgx"](t, s.URL())("read committed")
				if err != nil {
					t.Fatal(err)
				}
				if err := tx.exec("set local lock_timeout = '20ms'"); err != nil {
					t.Fatal(err)
				}
				if _, err := tx.lock(c.name, &pglock.TxOptions{Advisory: true, Keys: c.keys}); state(err) != "55P03" {
					t.Errorf("a transaction beside ours: %v; want a timeout", err)
				}
				tx.undo()
				leaves(t, a, mine, true)
			}
		})
	}
	a := user(t, bySession(s, "keys=number"))
	for _, name := range []string{"foo", "9223372036854775808", "1,2,3", "4294967296,1", ""} {
		if _, err := a.Acquire(t.Context(), mutex(name)); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("keys=number, name %q: %v; want that it is refused", name, err)
		}
	}
}

// Which way of locking excludes which: the table of the backend's page.
func TestWhatExcludesWhat(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	begin := clients["pgx"](t, s.URL())
	inTx := func(o *pglock.TxOptions) func(t *testing.T) (held bool, leave func()) {
		return func(t *testing.T) (bool, func()) {
			tx, err := begin("read committed")
			if err != nil {
				t.Fatal(err)
			}
			if err := tx.exec("set local lock_timeout = '20ms'"); err != nil {
				t.Fatal(err)
			}
			_, err = tx.lock("table", o)
			if err != nil && state(err) != "55P03" {
				t.Fatal(err)
			}
			return err == nil, tx.undo
		}
	}
	storetest.Exclude(t, "../docs/backends/postgres.md", []storetest.Way{
		{Name: "rows", Take: storetest.Lease(s.URL()), With: "rows"},
		{Name: "session", Take: storetest.Lease(by(s.URL(), "session")), With: "session, InTx by advisory"},
		{Name: "rowlock", Take: storetest.Lease(by(s.URL(), "rowlock")), With: "rowlock, InTx"},
		{Name: "InTx", Take: inTx(nil), With: "rowlock, InTx"},
		{Name: "InTx by advisory", Take: inTx(&pglock.TxOptions{Advisory: true}), With: "session, InTx by advisory"},
	})
}
