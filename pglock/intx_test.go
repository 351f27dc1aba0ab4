package pglock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // a driver of database/sql
	_ "github.com/lib/pq"              // another one

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/pglock"
)

// transaction is a program's own, by any client.
type transaction struct {
	lock   func(name string, o *pglock.TxOptions) (uint64, error)
	exec   func(sql string) error
	commit func() error
	undo   func()
}

// clients are how programs come to a transaction.
var clients = map[string]func(t *testing.T, url string) func(level string) (transaction, error){
	"pgx": func(t *testing.T, url string) func(string) (transaction, error) {
		p := pool(t, url)
		return func(level string) (transaction, error) {
			tx, err := p.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.TxIsoLevel(level)})
			return transaction{
				lock:   func(name string, o *pglock.TxOptions) (uint64, error) { return pglock.InTx(t.Context(), tx, name, o) },
				exec:   func(q string) error { _, err := tx.Exec(t.Context(), q, pgx.QueryExecModeSimpleProtocol); return err },
				commit: func() error { return tx.Commit(t.Context()) },
				undo:   func() { _ = tx.Rollback(context.Background()) },
			}, err
		}
	},
	"stdlib": func(t *testing.T, url string) func(string) (transaction, error) { return byName(t, "pgx", url) },
	"lib/pq": func(t *testing.T, url string) func(string) (transaction, error) { return byName(t, "postgres", url) },
}

func byName(t *testing.T, name, url string) func(level string) (transaction, error) {
	t.Helper()
	db, err := sql.Open(name, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	levels := map[string]sql.IsolationLevel{
		"read uncommitted": sql.LevelReadUncommitted, "read committed": sql.LevelReadCommitted,
		"repeatable read": sql.LevelRepeatableRead, "serializable": sql.LevelSerializable,
	}
	return func(level string) (transaction, error) {
		tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: levels[level]})
		return transaction{
			lock: func(name string, o *pglock.TxOptions) (uint64, error) {
				return pglock.InSQLTx(t.Context(), tx, name, o)
			},
			exec:   func(q string) error { _, err := tx.ExecContext(t.Context(), q); return err },
			commit: func() error { return tx.Commit() },
			undo:   func() { _ = tx.Rollback() },
		}, err
	}
}

// state is the SQLSTATE of an error, whatever the client.
func state(err error) string {
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		return e.SQLState()
	}
	return ""
}

// Two clients count to 400 under the lock, or to less by what differs in how it is sent, by rows
// that each finds where the last one left off. Whatever the isolation, no number is lost without an
// error; and tokens come in the order of the counts.
func TestInTxCounts(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for client, open := range clients {
		for _, level := range []string{"read uncommitted", "read committed", "repeatable read", "serializable"} {
			for _, advisory := range []bool{false, true} {
				t.Run(fmt.Sprint(client, "/", level, "/advisory=", advisory), func(t *testing.T) {
					turns := 200
					if testing.Short() && client != "pgx" { // the same statement, by another way
						turns = 20
					}
					begin := open(t, s.URL())
					table := strings.NewReplacer("/", "_", " ", "_", "=", "_", "#", "_").Replace(t.Name())
					execute(t, s, "create table "+table+" (n bigint, token bigint)")
					o := &pglock.TxOptions{Isolation: pgx.TxIsoLevel(level), Advisory: advisory}
					refused := advisory && !strings.HasSuffix(level, "committed")
					var both sync.WaitGroup
					for range 2 {
						both.Go(func() {
							for range turns {
								if n, err := again(t, begin, level, table, o, refused); err != nil {
									t.Errorf("after %d attempts: %v", n, err)
									return
								}
							}
						})
					}
					both.Wait()
					if refused {
						return
					}
					if n := ask[int](t, s, "select count(distinct n) from "+table); n != 2*turns {
						t.Errorf("%d numbers of %d, and no error: updates were lost", n, 2*turns)
					}
					if n := ask[int](t, s, "select count(*) from (select token - lag(token) over (order by n) as more from "+table+") d where more < 32"); n != 0 {
						t.Errorf("%d tokens are out of order", n)
					}
				})
			}
		}
	}
}

// again counts one on, with as many attempts as it takes.
func again(t *testing.T, begin func(string) (transaction, error), level, table string, o *pglock.TxOptions, refused bool) (n int, err error) {
	t.Helper()
	for n = 1; n < 10_000; n++ {
		tx, err := begin(level)
		if err != nil {
			return n, err
		}
		token, err := tx.lock(table, o)
		if refused {
			tx.undo()
			if !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "want read committed") {
				return n, fmt.Errorf("a %s transaction: %w; want that it is refused", level, err)
			}
			return n, nil
		}
		if err == nil {
			err = tx.exec(fmt.Sprintf("insert into %[1]s select coalesce(max(n), 0) + 1, %[2]d from %[1]s", table, token))
		}
		if err == nil {
			err = tx.commit()
		}
		tx.undo()
		if state(err) != "40001" {
			return n, err
		}
	}
	return n, errors.New("no end of serialization errors")
}

// A level that was not asked for by name is refused, and the transaction goes on without a lock.
func TestInTxRefusesAStaleSnapshot(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	begin := clients["pgx"](t, s.URL())
	for _, level := range []string{"repeatable read", "serializable"} {
		for _, o := range []*pglock.TxOptions{nil, {Advisory: true}, {Advisory: true, Isolation: pgx.TxIsoLevel(level)}} {
			tx, err := begin(level)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = tx.lock("stale", o); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "the transaction is "+level) {
				t.Errorf("%s, options %+v: %v; want that it is refused", level, o, err)
			}
			if n := ask[int](t, s, "select count(*) from pg_locks where locktype = 'advisory'"); n != 0 {
				t.Errorf("%d advisory locks of who was refused", n)
			}
			if err := errors.Join(tx.exec("select 1"), tx.commit()); err != nil {
				t.Errorf("a transaction that was refused a lock: %v", err)
			}
		}
	}
	// What was read before the lock was had is an error, and not a lost update; the name has a row
	// already.
	first, err := begin("read committed")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = first.lock("stale", nil); err != nil {
		t.Fatal(err)
	}
	if err := first.commit(); err != nil {
		t.Fatal(err)
	}
	stale, err := begin("repeatable read")
	if err != nil {
		t.Fatal(err)
	}
	defer stale.undo()
	if err := stale.exec("select 1 from pg_class limit 1"); err != nil {
		t.Fatal(err)
	}
	other, err := begin("read committed")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.lock("stale", nil); err != nil {
		t.Fatal(err)
	}
	if err := other.commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := stale.lock("stale", &pglock.TxOptions{Isolation: pgx.RepeatableRead}); state(err) != "40001" || !errors.Is(err, driver.ErrNotSent) {
		t.Errorf("a lock by a snapshot from before the last holder: %v; want a serialization error", err)
	}
}

// Until the transaction ends nobody else has the name, and no token comes twice, whoever rolls
// back.
func TestInTxHoldsUntilTheEnd(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for _, o := range []*pglock.TxOptions{nil, {Advisory: true}} {
		begin := clients["pgx"](t, s.URL())
		last := uint64(0)
		for i := range 4 {
			tx, err := begin("read committed")
			if err != nil {
				t.Fatal(err)
			}
			token, err := tx.lock("held", o)
			if err != nil || token < last+driver.Stride {
				t.Errorf("token %d after %d, %v", token, last, err)
			}
			last = token
			other, err := begin("read committed")
			if err != nil {
				t.Fatal(err)
			}
			if err := other.exec("set local lock_timeout = '20ms'"); err != nil {
				t.Fatal(err)
			}
			if _, err := other.lock("held", o); state(err) != "55P03" || !errors.Is(err, driver.ErrNotSent) {
				t.Errorf("the lock of another transaction: %v; want a timeout", err)
			}
			if _, err := other.lock("held", o); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "failed already: roll it back") {
				t.Errorf("in a transaction that has failed: %v", err)
			}
			other.undo()
			if i%2 == 0 {
				tx.undo()
			} else if err := tx.commit(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// After a failover to a standby that lacks the last commits the sequence lies behind. Tokens go on
// beyond all that may have been given, also beside a transaction that set it and goes on.
func TestInTxTokensAfterAStaleFailover(t *testing.T) {
	url := migrated(t).URL()
	begin := clients["pgx"](t, url)
	set := func(to string) {
		if _, err := pool(t, url).Exec(t.Context(), "select setval('interlock.token', "+to+")"); err != nil {
			t.Fatal(err)
		}
	}
	var last uint64
	var all []transaction
	for i, name := range []string{"a", "b", "c", "d"} {
		tx, err := begin("read committed")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tx)
		fence, err := tx.lock(name, &pglock.TxOptions{Advisory: i%2 == 1})
		if err != nil {
			t.Fatal(err)
		}
		if fence <= last {
			t.Errorf("token %d of %q, want more than %d", fence, name, last)
		}
		last = fence
		set("32000") // as the standby knows it
	}
	for _, tx := range all {
		if err := tx.commit(); err != nil {
			t.Error(err)
		}
	}
}

// What is wrong is said, with what would be right.
func TestInTxErrors(t *testing.T) {
	t.Parallel()
	bare := servertest.Postgres(t)
	s := migrated(t)
	for _, server := range []*servertest.Server{bare, s} {
		execute(t, server, "create role nobody login")
	}
	as := func(s *servertest.Server) string { return strings.Replace(s.URL(), "postgres@", "nobody@", 1) }
	for client, open := range clients {
		for _, c := range []struct {
			what, url, first, name, says string
			o                            *pglock.TxOptions
			is                           error
		}{
			{"no tables", bare.URL(), "", "a", "interlock migrate", nil, driver.ErrRefused},
			{"no rights", as(s), "", "a", "the role needs USAGE of schema interlock", nil, driver.ErrRefused},
			{"no rights", as(s), "", "a", "the role needs USAGE of schema interlock", &pglock.TxOptions{Advisory: true}, driver.ErrRefused},
			{"read-only", s.URL(), "set transaction read only", "a", "the transaction is read-only", nil, driver.ErrRefused},
			{"read-only", s.URL(), "set transaction read only", "a", "the transaction is read-only", &pglock.TxOptions{Advisory: true}, driver.ErrRefused},
			{"no name", s.URL(), "", "", "want 1 to", nil, driver.ErrRefused},
			{"what no mutex is named", s.URL(), "", "a\x00", "has the control character U+0000: want none", nil, driver.ErrRefused},
			{"no such keys", s.URL(), "", "a", `unknown keys "no": want one of django, dotnet, interlock`, &pglock.TxOptions{Keys: "no"}, nil},
			{"no such level", s.URL(), "", "a", "want one of read committed, repeatable read, serializable", &pglock.TxOptions{Isolation: "nonsense"}, nil},
			{"no such level", s.URL(), "", "a", "want one of read committed", &pglock.TxOptions{Isolation: "nonsense", Advisory: true}, nil},
			{"no such schema", s.URL(), "", "a", "schema", &pglock.TxOptions{Schema: `"; drop`}, nil},
		} {
			tx, err := open(t, c.url)("read committed")
			if err != nil {
				t.Fatal(err)
			}
			if c.first != "" {
				if err := tx.exec(c.first); err != nil {
					t.Fatal(err)
				}
			}
			if _, err = tx.lock(c.name, c.o); err == nil || !strings.Contains(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%s, %s: %v; want that it says: %s", client, c.what, err, c.says)
			}
			tx.undo()
		}
		tx, err := open(t, bare.URL())("read committed")
		if err != nil {
			t.Fatal(err)
		}
		if token, err := tx.lock("a", &pglock.TxOptions{Advisory: true}); err != nil || token != 0 {
			t.Errorf("%s: an advisory lock without tables: token %d, %v; want none and no error", client, token, err)
		}
		tx.undo()
		if _, err := tx.lock("a", nil); err == nil {
			t.Errorf("%s: a lock in a transaction that has ended", client)
		}
	}
}

// Behind a pooler that shares connections between transactions both ways work.
func TestInTxBehindAPooler(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	b := servertest.PgBouncer(t, s)
	execute(t, s, "create table pooled (n bigint, token bigint)")
	for i, o := range []*pglock.TxOptions{{}, {Advisory: true}} {
		begin := clients["pgx"](t, b.URL())
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 25 {
					if _, err := again(t, begin, "read committed", "pooled", o, false); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		if n := ask[int](t, s, "select count(distinct n) from pooled"); n != 100*(i+1) {
			t.Errorf("%d numbers of %d", n, 100*(i+1))
		}
	}
}

// READ UNCOMMITTED is READ COMMITTED here, and as good.
func TestInTxUncommitted(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for client, open := range clients {
		for _, o := range []*pglock.TxOptions{nil, {Advisory: true}, {Isolation: pgx.ReadUncommitted}} {
			tx, err := open(t, s.URL())("read committed")
			if err != nil {
				t.Fatal(err)
			}
			if err := tx.exec("set transaction isolation level read uncommitted"); err != nil {
				t.Fatal(err)
			}
			if token, err := tx.lock("uncommitted", o); err != nil || token == 0 {
				t.Errorf("%s, %+v: token %d, %v", client, o, token, err)
			}
			tx.undo()
		}
	}
}
