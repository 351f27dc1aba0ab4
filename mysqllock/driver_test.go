package mysqllock_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
	"github.com/interlock-go/interlock/mysqllock"
)

// Ten processes may migrate at once, and one that died on its way is followed by one that goes on.
func TestMigrateAtOnceAndAgain(t *testing.T) {
	t.Parallel()
	s := servertest.MariaDB(t)
	p := pool(t, s.URL())
	if _, err := enter(t, s.URL(), time.Minute); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "interlock migrate") {
		t.Errorf("without tables: %v; want how to make them", err)
	}
	execute(t, s, "create table interlock_lock (name varbinary(1024) primary key, fence bigint not null, line mediumblob not null)")
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if err := mysqllock.Migrate(t.Context(), p, nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	cycle(t, user(t, s.URL()), user(t, s.URL()))
	for version, want := range map[int]string{0: "is empty", 2: "", 3: "run a newer one"} {
		execute(t, s, fmt.Sprintf("update interlock_version set version = %d", version))
		if version == 0 {
			execute(t, s, "delete from interlock_version")
		}
		_, err := enter(t, s.URL(), time.Minute)
		if want == "" && err != nil || want != "" && (!errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), want)) {
			t.Errorf("version %d: %v; want %q", version, err, want)
		}
		if version == 0 {
			execute(t, s, "insert into interlock_version values (1)")
		}
	}
	execute(t, s, "update interlock_version set version = 3")
	if err := mysqllock.Migrate(t.Context(), p, nil); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "version 3") {
		t.Errorf("newer tables are migrated: %v", err)
	}
	execute(t, s, "update interlock_version set version = 1", "drop procedure interlock_place")
	if err := mysqllock.Migrate(t.Context(), p, nil); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "lacks interlock_place") {
		t.Errorf("what lacks a procedure: %v", err)
	}
	if err := mysqllock.Migrate(t.Context(), p, &mysqllock.Options{Prefix: "other_"}); err != nil {
		t.Fatal(err)
	}
	cycle(t, user(t, s.URL()+"?prefix=other_"), user(t, s.URL()+"?prefix=other_"))
}

// What cannot be is said, with what would be right, and without the password.
func TestBadInput(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	execute(t, s, "create user app identified by 'secret-1'")
	for url, want := range map[string]string{
		"mysql:///test":                              "want mysql://USER@HOST:PORT/DATABASE",
		"mysql://root@localhost":                     "names no database",
		"mysql://root:1/secret@localhost":            "a password written as %2F",
		"mysql://root:1?secret@localhost/test":       "a password written as %2F",
		s.URL() + "?technique=no":                    `unknown technique "no": want rows`,
		s.URL() + "?prefix=1x":                       "want at most 30 of a-z",
		s.URL() + "?timeout=-1s":                     "want a duration above 0, such as 3s",
		s.URL() + "?tls=maybe":                       "want false, true, skip-verify or preferred",
		s.URL() + "?loc=Local":                       `unknown parameter "loc"`,
		s.URL() + "?tls=true":                        "TLS",
		"mysql://root@" + s.Addr() + "/absent":       "want a database that there is",
		"mysql://app:secret-2@" + s.Addr() + "/test": "with the password, in the URL as mysql://USER:PASSWORD@",
		"mysql://app:secret-1@" + s.Addr() + "/test": "whom the server admits from here to the database",
		"mysql://root@127.0.0.1:1/test":              "connection refused",
	} {
		_, err := enter(t, url, time.Minute)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v; want %q", url, err, want)
		}
	}
	a := user(t, s.URL())
	long := mutex(strings.Repeat("x", 1025))
	if _, err := a.Acquire(t.Context(), long); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "want 1 to 1024") {
		t.Errorf("a name that is too long: %v", err)
	}
	execute(t, s, "set global read_only = 1")
	if _, err := enter(t, s.URL(), time.Minute); !errors.Is(err, driver.ErrNotSent) || !strings.Contains(err.Error(), "want its primary") {
		t.Errorf("a read-only server: %v", err)
	}
}

// What an administrator or a program may set does not break anything, and is as it was afterwards,
// on a pool of one connection.
func TestHostileSettings(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for _, set := range []string{
		"sql_mode=''", "sql_mode='ANSI,NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES'", "autocommit=0", "wait_timeout=5", "max_statement_time=0.5",
		"tx_isolation='REPEATABLE-READ'", "tx_isolation='SERIALIZABLE'", "time_zone='+05:00'", "character_set_client=latin1", "innodb_lock_wait_timeout=1",
	} {
		t.Run(set, func(t *testing.T) {
			name, value, _ := strings.Cut(set, "=")
			change := func(c *mysql.Config) { c.Params = map[string]string{name: value} }
			a, db := with(t, s, change)
			b, _ := with(t, s, change)
			before := state(t, db)
			cycle(t, a, b)
			if after := state(t, db); after != before {
				t.Errorf("a connection of the pool was %s and is %s", before, after)
			}
		})
	}
}

// What locks can lose by the server's settings is said.
func TestSettingsThatLoseLocks(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for flush, survives := range map[int]driver.Survival{
		0: {Process: true}, 1: {Process: true, Restart: true, Machine: true}, 2: {Process: true, Restart: true},
	} {
		execute(t, s, fmt.Sprintf("set global innodb_flush_log_at_trx_commit = %d", flush))
		var said bytes.Buffer
		d, err := mysqllock.New(t.Context(), pool(t, s.URL()), &mysqllock.Options{Logger: slog.New(slog.NewTextHandler(&said, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if d.Traits().Survives != survives || strings.Contains(said.String(), "innodb_flush_log_at_trx_commit") != (flush != 1) {
			t.Errorf("flushed by %d: survives %+v, and says %q", flush, d.Traits().Survives, said.String())
		}
		_ = d.Close(t.Context())
	}
	execute(t, s, "set global binlog_format = statement")
	if a, err := enter(t, s.URL(), time.Minute); err != nil {
		t.Error(err) // without a binary log it does not matter
	} else {
		asks(t, a, mutex("binlog"), true)
	}
}

// By some settings of a connection no lock can be kept, and that is said.
func TestSettingsThatAreRefused(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for setting, want := range map[string]string{
		"completion_type=1": "want NO_CHAIN", "completion_type=2": "want NO_CHAIN", "timestamp=1": "a timestamp of its own", "sql_select_limit=0": "answered nothing",
	} {
		name, value, _ := strings.Cut(setting, "=")
		c, _, err := mysqllock.ParseURL(s.URL())
		if err != nil {
			t.Fatal(err)
		}
		c.Params = map[string]string{name: value}
		connector, err := mysql.NewConnector(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := mysqllock.NewConnector(t.Context(), connector, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", setting, err, want)
		}
	}
}

// With innodb_snapshot_isolation, which MariaDB 11.8 has by default, who waited for the row of a
// line that was changed is told so by an error, and asks again.
func TestSnapshotIsolation(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	execute(t, s, "set global innodb_snapshot_isolation = 1")
	a, mine := user(t, s.URL()), mutex("changed")
	asks(t, a, mine, true)
	tx := begins(t, pool(t, s.URL()), sql.LevelReadCommitted)
	inTx(t, tx, "select * from interlock_lock for update")
	var all sync.WaitGroup
	all.Go(func() { leaves(t, a, mine, true) })
	becomes(t, s, rowWaits, 1)
	inTx(t, tx, "update interlock_lock set fence = fence + 32")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	all.Wait()
}

// Where transactions are read-only by default nothing is locked, and that is said.
func TestReadOnlyTransactions(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	a := user(t, s.URL())
	execute(t, s, "set global tx_read_only = 1")
	if _, err := enter(t, s.URL(), time.Minute); !errors.Is(err, driver.ErrUnable) || !strings.Contains(err.Error(), "transactions are read-only by default") {
		t.Errorf("a session: %v; want why it cannot be", err)
	}
	asks(t, a, mutex("read-only"), true) // over a connection from before
}

// What was sent over a connection that a program left in a transaction is refused, and its
// transaction is not touched.
func TestTransactionLeftOpen(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	db := pool(t, s.URL())
	db.SetMaxOpenConns(1)
	d, err := mysqllock.New(t.Context(), db, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := session(t, d, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"create table mine (n int) engine = innodb", "begin", "insert into mine values (1)"} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Acquire(t.Context(), mutex("begun")); !errors.Is(err, driver.ErrNotSent) || !strings.Contains(err.Error(), "has a transaction open") {
		t.Errorf("Acquire over a connection with a transaction: %v; want that it is refused", err)
	}
	if _, err := db.ExecContext(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}
	if n := ask[int](t, s, "select count(*) from mine"); n != 0 {
		t.Error("the program's transaction was committed")
	}
	c := mutex("begun")
	asks(t, a, c, true)
	leaves(t, a, c, true)
}

// Ten thousand leases are renewed by one statement, which finds the two that an operator broke.
func TestTenThousandLeases(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes ten thousand locks")
	}
	server := migrated(t)
	h := newHarness(server, server.URL())
	d := h.Driver(t)
	storetest.TenThousandLeases(t, d, func() int { return h.Calls(d) })
	if n := ask[int](t, server, "select count(*) from interlock_lock where line <> ''"); n != 0 {
		t.Errorf("%d names are locked when the session has closed", n)
	}
}
