package pglock_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/pglock"
)

// What an administrator may set does not break locks, or is said.
func TestSettings(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for _, setting := range []string{
		"default_transaction_isolation = 'serializable'", "statement_timeout = '500ms'", "synchronous_commit = 'off'",
		"idle_in_transaction_session_timeout = '100ms'", "standard_conforming_strings = off", "bytea_output = 'escape'",
		"search_path = ''", "DateStyle = 'German'", "IntervalStyle = 'iso_8601'", "extra_float_digits = 0", "lock_timeout = '50ms'",
	} {
		execute(t, s, "alter role postgres set "+setting)
		cycle(t, s.URL())
		if !strings.HasPrefix(setting, "default_transaction_isolation") {
			execute(t, s, "alter role postgres reset "+strings.Fields(setting)[0])
		}
	}
	execute(t, s, "alter role postgres set default_transaction_read_only = on")
	session, err := enter(t, s.URL(), time.Minute)
	if err == nil {
		_, err = session.Acquire(t.Context(), mutex("read-only"))
	}
	if !errors.Is(err, driver.ErrUnable) || !errors.Is(err, driver.ErrNotSent) || !strings.Contains(err.Error(), "the default of the database or the role is read-only") {
		t.Errorf("a default of read-only: %v; want that it is said", err)
	}
}

// Where the default is SERIALIZABLE our statements are not: none of those that contend for a row is
// rolled back for having read before it got the row.
func TestSerializableByDefault(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	execute(t, s, "alter role postgres set default_transaction_isolation = 'serializable'")
	rollbacks := "select xact_rollback::int from pg_stat_database where datname = 'postgres'"
	before := ask[int](t, s, rollbacks)
	var all sync.WaitGroup
	for range 4 {
		d, err := driver.OpenURL(t.Context(), s.URL())
		if err != nil {
			t.Fatal(err)
		}
		session, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			for range 40 {
				c := mutex("contended")
				if g, err := session.Acquire(t.Context(), c); err != nil || !g.Held {
					awaits(t, session, c)
				}
				leaves(t, session, c, true)
			}
			if err := d.Close(t.Context()); err != nil { // what its connections count is told when they end
				t.Error(err)
			}
		})
	}
	all.Wait()
	until(t, "the connections are ended", func() bool {
		return ask[int](t, s, "select count(*) from pg_stat_activity where application_name = 'interlock'") == 0
	})
	if n := ask[int](t, s, rollbacks) - before; n != 0 {
		t.Errorf("%d statements were rolled back, want none", n)
	}
}

// What was granted is on the disk when it is told, also where the program does not wait for its own
// commits: a server that crashes at once has the grant, and the token, when it is back.
func TestGrantsAreDurable(t *testing.T) {
	t.Parallel()
	s := migrated(t, "-c", "synchronous_commit=off", "-c", "wal_writer_delay=10s")
	a, b := user(t, s.URL()), user(t, s.URL())
	for i := range 3 {
		name := fmt.Sprint("durable/", i)
		mine := mutex(name)
		g := asks(t, a, mine, true)
		if err := errors.Join(s.Kill(), s.Restart(t.Context())); err != nil {
			t.Fatal(err)
		}
		if other, err := b.Acquire(t.Context(), tries(name)); err != nil || other.Held {
			t.Fatalf("held %v, %v: a grant was lost when the server crashed", other.Held, err)
		}
		if again := asks(t, a, mine, true); again.Fence != g.Fence {
			t.Errorf("token %d, and before the crash %d", again.Fence, g.Fence)
		}
		leaves(t, a, mine, true)
	}
}

// That a crash of the machine can lose what was written is said, whatever the technique.
func TestFlushingIsSaid(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]bool{"fsync=on": false, "fsync=off": true, "fsync=on full_page_writes=off": true} {
		var settings []string
		for _, arg := range strings.Fields(args) {
			settings = append(settings, "-c", arg)
		}
		p := pool(t, migrated(t, settings...).URL())
		for _, technique := range leases {
			var said bytes.Buffer
			d, err := pglock.New(t.Context(), p, &pglock.Options{Technique: technique, Logger: slog.New(slog.NewTextHandler(&said, nil))})
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if n := strings.Count(said.String(), "fsync or full_page_writes is off"); want && n != 1 || !want && said.Len() > 0 {
				t.Errorf("%s with %s says: %s", technique, args, said.String())
			}
		}
	}
}

// Where nobody can be told, who waits asks: behind a pooler, and where no connection to listen over
// can be had.
func TestWaitersAskWhereNobodyTells(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	nowhere, err := pgx.ParseConfig("postgres://postgres@127.0.0.1:1/postgres?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	for what, o := range map[string]*pglock.Options{"behind a pooler": nil, "without a connection to listen over": {Listen: nowhere}} {
		d, err := pglock.New(t.Context(), pool(t, s.URL()), o)
		if err != nil {
			t.Fatal(err)
		}
		if o == nil {
			d.(*pglock.Driver).Pooled()
			if d.Traits().Events != 0 {
				t.Error("a driver whose claims ask promises that they are told")
			}
		}
		b, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		a, mine := user(t, s.URL()), mutex(what)
		asks(t, a, mine, true)
		var all sync.WaitGroup
		for range 3 {
			next := mutex(what)
			asks(t, b, next, false)
			all.Go(func() {
				awaits(t, b, next)
				leaves(t, b, next, true)
			})
		}
		leaves(t, a, mine, true)
		all.Wait()
		if n := ask[int](t, s, "select count(*) from pg_stat_activity where query like '%listen%' and pid <> pg_backend_pid()"); n != 0 {
			t.Errorf("%s, %d connections listen", what, n)
		}
		if err := d.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// What a URL says to the server reaches it as it stands there, blanks and all: pgx reads a + as
// libpq does, as itself.
func TestURLOfServersOptions(t *testing.T) {
	t.Parallel()
	config, _, err := pglock.ParseURL("postgres://u@localhost/d?prefix=ab&options=-c%20work_mem%3D1MB%20-c%20search_path%3Da%2Bb")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := config.ConnConfig.RuntimeParams["options"], "-c work_mem=1MB -c search_path=a+b"; got != want {
		t.Errorf("the server is told %q, want %q", got, want)
	}
}

// What libpq takes for the defaults, it is here, too.
func TestURLOfDefaults(t *testing.T) {
	t.Setenv("PGHOST", "db.example")
	t.Setenv("PGUSER", "app")
	config, _, err := pglock.ParseURL("postgres://")
	if err != nil || config.ConnConfig.Host != "db.example" || config.ConnConfig.User != "app" {
		t.Errorf("postgres:// alone: %v", err)
	}
}
