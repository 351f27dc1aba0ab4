package shedlock_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
	"github.com/interlock-go/interlock/shedlock"
)

// A name is kept as it is, or refused: a table whose collation takes two names for the same says so.
func TestNamesAreKeptOrRefused(t *testing.T) {
	both(t, func(t *testing.T, on opening) {
		s := on(t)
		a := storetest.Entered(t, opened(t, s), time.Minute)
		refused := func(name, why string) {
			t.Helper()
			if _, err := a.Acquire(t.Context(), mutex(name)); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), why) {
				t.Errorf("%q: %v; want it refused, with %s", name, err, why)
			}
		}
		for _, name := range []string{strings.Repeat("x", 64), strings.Repeat("日", 64), `'"\%_`, "job"} {
			c := mutex(name)
			a.Asks(c, true)
			a.Asks(mutex(name), false)
			a.Leaves(c, true)
		}
		refused(strings.Repeat("x", 65), "the table keeps 1 to 64")
		refused("a\x00", "of UTF-8 without zeros")
		refused("\xff", "of UTF-8 without zeros")
		shared := mutex("shared")
		shared.Kind, shared.Weight = driver.Read, 1
		if _, err := a.Acquire(t.Context(), shared); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("a reader: %v; want it refused", err)
		}
		for _, name := range []string{"Job", "job "} {
			if s.postgres {
				a.Asks(mutex(name), true)
				continue
			}
			refused(name, `for "job"`) // which is free
		}
		a.Asks(mutex("job"), true)
		if s.postgres {
			s.must(t, "alter table shedlock alter column name type text")
			storetest.Entered(t, opened(t, s), time.Minute).Asks(mutex(strings.Repeat("x", 255)), true)
			return
		}
		refused("JOB", `for "job"`) // which is held
		latin := storetest.Entered(t, opened(t, s, "charset=latin1"), time.Minute)
		latin.Asks(mutex("日本"), true)
		latin.Asks(mutex("日本"), false) // what stands there is read whole
		s.must(t, "delete from shedlock")
		s.must(t, "alter table shedlock convert to character set latin1")
		a = storetest.Entered(t, opened(t, s), time.Minute)
		refused("é", "ASCII")
		s.must(t, "alter table shedlock drop primary key, add primary key (name(3))")
		a = storetest.Entered(t, opened(t, s), time.Minute)
		a.Asks(mutex("backup"), true)
		refused("bacon", "want names that differ for its key")
		s.must(t, "delete from shedlock")
		s.must(t, "alter table shedlock drop primary key, add primary key (name)")
		s.must(t, "alter table shedlock convert to character set utf16")
		a = storetest.Entered(t, opened(t, s), time.Minute)
		for range 2 { // the second time the row is there
			c := mutex("job")
			a.Asks(c, true)
			a.Leaves(c, true)
		}
	})
}

// What is wrong with a table or a connection is said when the store is opened, with what would be right.
func TestRefusals(t *testing.T) {
	both(t, func(t *testing.T, on opening) {
		s := on(t)
		says := func(what string, err error, wants ...string) {
			t.Helper()
			for _, want := range wants {
				if err == nil || !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("%s: %v; want it refused, with %q and no password", what, err, want)
				}
			}
		}
		at := func(parameters string) error {
			sep := "?"
			if s.postgres {
				sep = "&"
			}
			url := strings.NewReplacer("postgres@", "postgres:hunter2@", "root@", "root:hunter2@").Replace(s.url(s.Addr()))
			if !strings.Contains(parameters, "nobody") && !s.postgres {
				url = s.url(s.Addr())
			}
			d, err := driver.OpenURL(t.Context(), url+sep+parameters)
			if err == nil {
				_ = d.Close(t.Context())
			}
			return err
		}
		create := map[bool]string{true: "make it as ShedLock says, CREATE TABLE none (name VARCHAR(64) NOT NULL, lock_until TIMESTAMP NOT NULL", false: "lock_until TIMESTAMP(3) NOT NULL"}[s.postgres]
		says("no table", at("table=none"), create)
		says("a table that is none", at("table=a%3Bb"), "want letters, digits and _")
		s.must(t, "create table narrow (name varchar(64) primary key, lock_until timestamp)")
		says("columns are missing", at("table=narrow"), "CREATE TABLE narrow")
		says("an unknown setting", at("nonsense=1"), "neither a parameter of ours")
		for _, bad := range []string{"timeout=soon", "timeout=-1s", "table=a&table=b", "%zz=1"} {
			if err := at(bad); err == nil || !strings.Contains(err.Error(), "want") || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %v; want what would be right", bad, err)
			}
		}
		if err := at("table=" + map[bool]string{true: "PUBLIC.ShedLock", false: "test.shedlock"}[s.postgres]); err != nil {
			t.Errorf("a table with what it is in: %v", err)
		}
		bare, _, _ := strings.Cut(s.url(s.Addr()), "?")
		if _, err := driver.OpenURL(t.Context(), bare+"_absent"); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "want a database that there is") {
			t.Errorf("no such database: %v", err)
		}
		if d, err := driver.OpenURL(t.Context(), bare); err != nil {
			t.Errorf("a URL without parameters: %v", err)
		} else {
			_ = d.Close(t.Context())
		}
		for _, scheme := range []string{"mysql", "postgres"} {
			for _, rest := range []string{"://root:1/hunter2@localhost", "://root:1?hunter2@localhost/test"} {
				if _, err := driver.OpenURL(t.Context(), "shedlock+"+scheme+rest); err == nil || !strings.Contains(err.Error(), "a password written as %2F") || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("a password that ends the host: %v", err)
				}
			}
		}
		if s.postgres {
			s.must(t, "create table zoned (name varchar(64) primary key, lock_until timestamptz, locked_at timestamptz, locked_by text)")
			says("times with a zone", at("table=zoned"), "want the type timestamp")
			s.must(t, "create table keyless (name varchar(64), lock_until timestamp, locked_at timestamp, locked_by text)")
			s.must(t, "create index on keyless (name)")
			says("no key", at("table=keyless"), "not the primary key")
			s.must(t, "create table days (name varchar(64) primary key, lock_until date, locked_at timestamp, locked_by text)")
			says("times that are days", at("table=days"), "of the type date: want timestamp")
			s.must(t, "create table blanks (name char(64) primary key, lock_until timestamp, locked_at timestamp, locked_by varchar(255))")
			says("names with blanks", at("table=blanks"), "its column name is of the type character: want varchar(64)")
			s.must(t, "create unlogged table unlogged (name varchar(64) primary key, lock_until timestamp, locked_at timestamp, locked_by varchar(255))")
			says("a table that a crash empties", at("table=unlogged"), "want neither")
			s.must(t, "create table short (name varchar(64) primary key, lock_until timestamp, locked_at timestamp, locked_by varchar(254))")
			says("no room for the holder", at("table=short"), "want varchar(255)")
			return
		}
		s.must(t, "create table keyless (name varchar(64), lock_until timestamp(3), locked_at timestamp(3), locked_by varchar(255))")
		says("no key", at("table=keyless"), "not the primary key")
		s.must(t, "create table keyed (name varchar(64), lock_until timestamp(3), locked_at timestamp(3), locked_by varchar(255), primary key (name, locked_by))")
		says("a key of two columns", at("table=keyed"), "not the primary key")
		s.must(t, "create table days (name varchar(64) primary key, lock_until date, locked_at timestamp(3), locked_by varchar(255))")
		says("times that are days", at("table=days"), "of the type date: want timestamp(3) or datetime(3)")
		for _, engine := range []string{"MyISAM", "Aria", "MEMORY"} {
			s.must(t, "create table flat (name varchar(64) primary key, lock_until timestamp(3), locked_at timestamp(3), locked_by varchar(255)) engine = "+engine)
			says("a table of the engine "+engine, at("table=flat"), "want InnoDB")
			s.must(t, "drop table flat")
		}
		s.must(t, "create table blanks (name char(64) primary key, lock_until timestamp(3), locked_at timestamp(3), locked_by varchar(255))")
		says("names with blanks", at("table=blanks"), "its column name is of the type char: want varchar(64)")
		s.must(t, "create table short (name varchar(64) primary key, lock_until timestamp(3), locked_at timestamp(3), locked_by varchar(254))")
		says("no room for the holder", at("table=short"), "want varchar(255)")
		says("a timestamp of its own", at("timestamp=1"), "time stands still")
		says("a time zone of its own", at("time_zone=%27%2B05%3A00%27"), "want no time_zone")
		says("no such user", at("nobody=1"), "want a user that there is")
		uncommitted, err := sql.Open("mysql", "root@tcp("+s.Addr()+")/test?autocommit=0")
		if err != nil {
			t.Fatal(err)
		}
		defer uncommitted.Close()
		_, err = shedlock.New(t.Context(), uncommitted, nil)
		says("no autocommit", err, "want autocommit=1")
		for _, url := range []string{"shedlock+mysql://root:hunter2@/test", "shedlock+mysql://root:hunter2@localhost"} {
			if _, err := driver.OpenURL(t.Context(), url); err == nil || !strings.Contains(err.Error(), "want shedlock+mysql://USER:PASSWORD@HOST:PORT/DATABASE") || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %v", driver.Redact(url), err)
			}
		}
	})
}

// What is answered where a statement may have been carried out, by the server or by a pooler that lost it, says nothing for certain.
func TestAnswersThatTellNothing(t *testing.T) {
	both(t, func(t *testing.T, on opening) {
		s := on(t)
		a := storetest.Entered(t, opened(t, s), time.Minute)
		free := mutex("job")
		a.Asks(free, true)
		a.Leaves(free, true)
		tells := func(what string, err error) {
			t.Helper()
			if err == nil || errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused) {
				t.Errorf("%s: %v; want an error that says nothing of what was done", what, err)
			}
		}
		codes, fails, drop := []string{"1053", "1180", "1317", "1927", "1969", "3024"}, "create trigger fails before update on shedlock for each row signal sqlstate 'HY000' set mysql_errno = CODE", "drop trigger fails"
		if s.postgres {
			codes, drop = []string{"57P02", "40003", "08P01"}, "drop function fails cascade"
			fails = "create function fails() returns trigger language plpgsql as $$ begin raise exception using errcode = 'CODE'; end $$; create trigger fails before update on shedlock execute function fails()"
		}
		for _, code := range codes {
			s.must(t, strings.Replace(fails, "CODE", code, 1))
			_, err := a.Acquire(t.Context(), mutex("job"))
			tells(code, err)
			s.must(t, drop)
		}
		if !s.postgres {
			return
		}
		w := wire.New(t, s.Addr())
		_, port, _ := strings.Cut(w.Addr(), ":")
		b := servertest.PgBouncer(t, s.Server, "[databases]", "* = host=127.0.0.1 user=postgres port="+port)
		a, c := storetest.Entered(t, openedAt(t, s, b.Addr(), "timeout="+soon.String()), time.Minute), mutex("job")
		heal := w.Stall(wire.Replies)
		answer := make(chan error, 1)
		go func() { _, err := a.Acquire(t.Context(), c); answer <- err }()
		storetest.Until(t, "the row is taken", func() bool { return s.count(t, "lock_until > NOW") == 1 })
		w.Cut()
		heal()
		tells("a pooler that lost the server", <-answer)
		a.Leaves(c, true)
	})
}

// Who may not write hears which rights are needed.
func TestRights(t *testing.T) {
	both(t, func(t *testing.T, on opening) {
		s := on(t)
		as := "reader@"
		if s.postgres {
			s.must(t, "create role reader login")
			s.must(t, "grant select on shedlock to reader")
		} else {
			s.must(t, "create user reader")
			s.must(t, "grant select on test.shedlock to reader")
		}
		d, err := driver.OpenURL(t.Context(), strings.NewReplacer("postgres@", as, "root@", as).Replace(s.url(s.Addr())))
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close(t.Context())
		if _, err := storetest.Entered(t, d, time.Minute).Acquire(t.Context(), mutex("job")); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "needs SELECT, INSERT and UPDATE of table shedlock") {
			t.Errorf("%v; want it refused, with the rights", err)
		}
	})
}

// The client gives up the connections of a server that is read-only, and says no more than that: what it is, is said here.
func TestReadOnlyServer(t *testing.T) {
	t.Parallel()
	s := onMariaDB(t)
	for _, statement := range []string{"create user app", "grant select, insert, update on test.shedlock to app", "set global read_only = 1"} {
		s.must(t, statement)
	}
	d, err := driver.OpenURL(t.Context(), strings.Replace(s.url(s.Addr()), "root@", "app@", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(t.Context())
	if _, err := storetest.Entered(t, d, time.Minute).Acquire(t.Context(), mutex("job")); !errors.Is(err, driver.ErrNotSent) || !strings.Contains(err.Error(), "is read-only: want its primary") {
		t.Errorf("%v; want that it was not sent, and why", err)
	}
}

// A standby, or a server that is down, is no refusal: nothing was sent.
func TestServerIsAway(t *testing.T) {
	both(t, func(t *testing.T, on opening) {
		s := on(t)
		a := storetest.Entered(t, opened(t, s), time.Minute)
		c := mutex("job")
		a.Asks(c, true)
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Acquire(t.Context(), mutex("other")); err == nil || errors.Is(err, driver.ErrRefused) {
			t.Errorf("a server that is down: %v", err)
		}
		if err := s.Server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		storetest.Until(t, "the server answers", func() bool { _, err := a.Renew(t.Context()); return err == nil })
		a.Loses()
		a.Leaves(c, true)
	})
}
