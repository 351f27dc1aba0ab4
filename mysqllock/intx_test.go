package mysqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/mysqllock"
)

// migratedAs starts a server that has the tables as MariaDB has them, or as MySQL does.
func migratedAs(t *testing.T, form string, args ...string) *servertest.Server {
	t.Helper()
	if form == "MariaDB" {
		return migrated(t, args...)
	}
	s := servertest.MariaDB(t, args...)
	if err := mysqllock.MigrateAsMySQL(t.Context(), pool(t, s.URL())); err != nil {
		t.Fatal(err)
	}
	return s
}

var levels = []sql.IsolationLevel{sql.LevelReadUncommitted, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}

// begins begins a transaction that ends with the test.
func begins(t *testing.T, db *sql.DB, level sql.IsolationLevel) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(context.WithoutCancel(t.Context()), &sql.TxOptions{Isolation: level})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func inTx(t *testing.T, tx *sql.Tx, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := tx.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// turn has a lock for the length of a transaction that does nothing.
func turn(t *testing.T, db *sql.DB, name string) uint64 {
	t.Helper()
	tx := begins(t, db, sql.LevelDefault)
	fence, err := mysqllock.InTx(t.Context(), tx, name, nil)
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	return fence
}

func number(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

// Two clients count under the lock, each by what it reads. Whatever the isolation, and whatever was
// read before, no number is lost without an error; and tokens come in the order of the counts.
func TestInTxCounts(t *testing.T) {
	t.Parallel()
	turns := 200
	if testing.Short() { // sixteen contests at once
		turns = 50
	}
	for _, form := range []string{"MariaDB", "MySQL"} {
		s := migratedAs(t, form)
		db := pool(t, s.URL())
		for i, level := range levels {
			if testing.Short() && form == "MySQL" && level != sql.LevelRepeatableRead {
				continue // the same statements, with another way to draw tokens: make proof
			}
			for j, before := range []string{"", "select count(*) from %s"} {
				t.Run(fmt.Sprint(form, "/", level, "/reads before=", before != ""), func(t *testing.T) {
					t.Parallel()
					table := fmt.Sprintf("counts%d%d", i, j)
					execute(t, s, "create table "+table+" (n int, token bigint) engine = innodb")
					var both sync.WaitGroup
					for range 2 {
						both.Go(func() {
							for range turns {
								if err := again(t, db, level, table, before); err != nil {
									t.Error(err)
									return
								}
							}
						})
					}
					both.Wait()
					if n := ask[int](t, s, "select count(distinct n) from "+table); n != 2*turns {
						t.Errorf("%d numbers of %d, and no error: updates were lost", n, 2*turns)
					}
					if n := ask[int](t, s, "select count(*) from "+table+" a join "+table+" b on b.n = a.n + 1 where b.token < a.token + 32"); n != 0 {
						t.Errorf("%d tokens are out of order", n)
					}
				})
			}
		}
	}
}

// again counts one on, with as many attempts as it takes.
func again(t *testing.T, db *sql.DB, level sql.IsolationLevel, table, before string) error {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		err := once(t, db, level, table, before)
		if !errors.Is(err, driver.ErrNotSent) && number(err) != 1213 {
			return err
		}
	}
	return errors.New("no end of errors")
}

func once(t *testing.T, db *sql.DB, level sql.IsolationLevel, table, before string) error {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var n int
	if before != "" {
		if err := tx.QueryRowContext(t.Context(), fmt.Sprintf(before, table)).Scan(&n); err != nil {
			return err
		}
	}
	token, err := mysqllock.InTx(t.Context(), tx, table, nil)
	if err != nil {
		return err
	}
	if err := tx.QueryRowContext(t.Context(), "select coalesce(max(n), 0) from "+table).Scan(&n); err != nil {
		return err
	}
	if _, err := tx.ExecContext(t.Context(), fmt.Sprintf("insert into %s values (%d, %d)", table, n+1, token)); err != nil {
		return err
	}
	return tx.Commit()
}

// What was read before the lock was had is an error where others have had it since, also of a
// snapshot that was asked for, and by a server that looks itself.
func TestInTxRefusesAStaleSnapshot(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"MariaDB", "MySQL"} {
		s := migratedAs(t, form)
		db := pool(t, s.URL())
		execute(t, s, "create table mine (n int) engine = innodb")
		for _, name := range []string{"new", "known"} {
			for _, looks := range []string{"0", "1"} {
				for _, read := range []string{"select * from mine", "start transaction with consistent snapshot"} {
					name := name + looks + read
					if strings.HasPrefix(name, "known") {
						turn(t, db, name)
					}
					stale := begins(t, db, sql.LevelRepeatableRead)
					inTx(t, stale, "set session innodb_snapshot_isolation = "+looks, read)
					turn(t, db, name)
					if _, err := mysqllock.InTx(t.Context(), stale, name, nil); !errors.Is(err, driver.ErrNotSent) || !strings.Contains(err.Error(), "somebody has held the lock since") {
						t.Errorf("%s: a lock by a snapshot from before the last holder: %v; want that it is stale", name, err)
					}
					inTx(t, stale, "set session innodb_snapshot_isolation = 0")
					_ = stale.Rollback()
				}
			}
		}
		fresh := begins(t, db, sql.LevelRepeatableRead)
		inTx(t, fresh, "select * from mine")
		if _, err := mysqllock.InTx(t.Context(), fresh, "known", nil); err != nil {
			t.Errorf("nobody has had the lock since it began to read: %v", err)
		}
	}
}

// Until the transaction ends nobody else has the name, others have other names, new ones too, and
// no token comes twice, whoever rolls back.
func TestInTxHoldsUntilTheEnd(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"MariaDB", "MySQL"} {
		s := migratedAs(t, form)
		db := pool(t, s.URL())
		last := uint64(0)
		for i := range 8 {
			tx := begins(t, db, levels[i%4])
			token, err := mysqllock.InTx(t.Context(), tx, "held", nil)
			if err != nil || token < last+driver.Stride {
				t.Errorf("token %d after %d, %v", token, last, err)
			}
			if _, err := mysqllock.InTx(t.Context(), tx, fmt.Sprint("made", i), nil); err != nil {
				t.Fatal(err)
			}
			for j, name := range []string{fmt.Sprint("made", i, "x"), "a", "hel", "held ", "Held", fmt.Sprint("gone", i), fmt.Sprint("held", i), "z"} {
				other := begins(t, db, levels[j%4])
				inTx(t, other, "set innodb_lock_wait_timeout = 10")
				if last, err = mysqllock.InTx(t.Context(), other, name, nil); err != nil || last < token+driver.Stride {
					t.Fatalf("%q beside the lock of another name: token %d after %d, %v", name, last, token, err)
				}
				_ = other.Rollback()
			}
			other := begins(t, db, levels[i%4])
			inTx(t, other, "set innodb_lock_wait_timeout = 0")
			if _, err := mysqllock.InTx(t.Context(), other, "held", nil); number(err) != 1205 || !errors.Is(err, driver.ErrNotSent) {
				t.Errorf("the lock of another transaction: %v; want a timeout", err)
			}
			inTx(t, other, "set innodb_lock_wait_timeout = 30")
			_ = other.Rollback()
			if i%2 == 0 {
				_ = tx.Rollback()
			} else if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A token that a transaction has committed is not drawn again after a crash right then, also where
// the clock was set back.
func TestInTxTokensSurviveCrashes(t *testing.T) {
	t.Parallel()
	for form, migrate := range map[string]func(context.Context, *sql.DB) error{
		"MariaDB": func(ctx context.Context, db *sql.DB) error { return mysqllock.Migrate(ctx, db, nil) },
		"MySQL":   mysqllock.MigrateAsMySQL,
	} {
		s, err := servertest.StartMariaDB(t.Context(), servertest.Options{Clock: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		if err := migrate(t.Context(), pool(t, s.URL())); err != nil {
			t.Fatal(err)
		}
		var last uint64
		for i := range 4 {
			fence := turn(t, pool(t, s.URL()), "crash")
			if fence < last+driver.Stride {
				t.Errorf("%s: token %d after %d", form, fence, last)
			}
			last = fence
			if i == 1 {
				if err := s.Step(-time.Hour); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(s.Kill(), s.Restart(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A replica that took over lacks the last draws. Tokens go on beyond all that may have been given.
func TestInTxTokensAfterAStaleFailover(t *testing.T) {
	t.Parallel()
	for form, stale := range map[string]string{"MariaDB": "alter sequence interlock_token restart 1", "MySQL": "alter table interlock_token auto_increment = 1"} {
		s := migratedAs(t, form)
		db := pool(t, s.URL())
		var last uint64
		for range 4 {
			fence := turn(t, db, "failover")
			if fence < last+driver.Stride {
				t.Errorf("%s: token %d after %d", form, fence, last)
			}
			last = fence
			for ask[uint64](t, s, "select "+now) < last+2000 { // which is as far apart as two servers' clocks may be
			}
			execute(t, s, stale)
		}
	}
}

// What is wrong is said, with what would be right.
func TestInTxErrors(t *testing.T) {
	t.Parallel()
	bare, s := servertest.MariaDB(t), migrated(t)
	for _, server := range []*servertest.Server{bare, s} {
		execute(t, server, "create user nobody@127.0.0.1", "grant select, execute on test.* to nobody@127.0.0.1")
	}
	execute(t, s, "create user app@127.0.0.1", "grant execute on test.* to app@127.0.0.1",
		"grant select, insert, update on test.interlock_held to app@127.0.0.1", "grant select, insert, delete on test.interlock_token to app@127.0.0.1")
	as := func(s *servertest.Server, user string) string { return strings.Replace(s.URL(), "root@", user+"@", 1) }
	for _, c := range []struct {
		what, url, first, name, says string
		o                            *mysqllock.TxOptions
		is                           error
	}{
		{"right", as(s, "app"), "do 0", "a", "", nil, nil},
		{"no tables", bare.URL(), "do 0", "a", "interlock migrate", nil, driver.ErrRefused},
		{"no rights", as(s, "nobody"), "do 0", "a", "the user needs EXECUTE", nil, driver.ErrRefused},
		{"read-only", s.URL(), "start transaction read only", "a", "the transaction is read-only", nil, driver.ErrRefused},
		{"committed by a statement", s.URL(), "create table if not exists made (n int)", "a", "the transaction has ended already", nil, driver.ErrRefused},
		{"no name", s.URL(), "do 0", "", "want 1 to 1024", nil, driver.ErrRefused},
		{"long name", s.URL(), "do 0", strings.Repeat("x", 1025), "want at most 1024", nil, driver.ErrRefused},
		{"what no mutex is named", s.URL(), "do 0", "a\x00", "has the control character U+0000: want none", nil, driver.ErrRefused},
		{"what no mutex is named", s.URL(), "do 0", "\xff", "is not UTF-8", nil, driver.ErrRefused},
		{"no such prefix", s.URL(), "do 0", "a", "prefix", &mysqllock.TxOptions{Prefix: "`; drop"}, nil},
		{"other prefix", s.URL(), "do 0", "a", "interlock migrate", &mysqllock.TxOptions{Prefix: "other_"}, driver.ErrRefused},
	} {
		tx := begins(t, pool(t, c.url), sql.LevelDefault)
		inTx(t, tx, c.first)
		_, err := mysqllock.InTx(t.Context(), tx, c.name, c.o)
		if c.says == "" {
			if err != nil {
				t.Errorf("%s: %v", c.what, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v; want that it says: %s", c.what, err, c.says)
		}
		_ = tx.Rollback()
	}
	// A refused lock changes nothing of the connection.
	db := pool(t, s.URL())
	db.SetMaxOpenConns(1)
	tx := begins(t, db, sql.LevelDefault)
	inTx(t, tx, "create table if not exists made (n int)")
	_, _ = mysqllock.InTx(t.Context(), tx, "a", nil)
	_ = tx.Rollback()
	execute(t, s, "truncate made", "insert into made values (1)")
	tx = begins(t, db, sql.LevelDefault)
	var before, after int
	_ = tx.QueryRowContext(t.Context(), "select count(*) from made").Scan(&before)
	execute(t, s, "insert into made values (2)")
	if err := tx.QueryRowContext(t.Context(), "select count(*) from made").Scan(&after); err != nil || before != 1 || after != 1 {
		t.Errorf("the next transaction of the connection reads %d and %d rows, %v: it is not at its own isolation level", before, after, err)
	}
}
