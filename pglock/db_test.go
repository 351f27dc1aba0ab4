package pglock_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/internal/storetest"
	"github.com/interlock-go/interlock/pglock"
)

func database(t drivertest.T, client, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open(client, url)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// The drivers are made of a sql.DB.
func TestConformanceOfSQL(t *testing.T) {
	t.Parallel()
	s := migrated(t, "-c", "fsync=on", "-c", "max_connections=700") // a law opens a hundred drivers
	for _, client := range []string{"pgx", "postgres"} {
		over := func(of *storetest.Store) {
			of.Open = func(t drivertest.T, url string) driver.Driver {
				t.Helper()
				o := &pglock.Options{Logger: slog.New(slog.DiscardHandler)}
				var err error
				if client == "postgres" {
					if o.Listen, err = pgx.ParseConfig(url); err != nil {
						t.Fatalf("%v", err)
					}
				}
				d, err := pglock.NewSQL(context.Background(), database(t, client, url), o)
				if err != nil {
					t.Fatalf("open: %v", err)
				}
				return d
			}
			if client == "postgres" { // which does not say what was sent, and so pings before
				of.Budget = drivertest.Budget{Acquire: 2, Release: 2, Handoff: 2}
			}
		}
		t.Run(client, func(t *testing.T) {
			drivertest.Run(t, func(*testing.T) drivertest.Harness { return newHarness(s, over) }, storetest.InShort("Law03_OneSession", "Law14_LostNotice")...)
		})
	}
}

// Every technique by every client, the server named or not: what the others cannot do they refuse
// before anything is done.
func TestSQLClients(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for _, client := range []string{"pgx", "postgres"} {
		for _, technique := range []string{"rows", "session", "rowlock"} {
			for _, listen := range []bool{true, false} {
				o := &pglock.Options{Technique: technique}
				if listen {
					o.Listen, _ = pgx.ParseConfig(s.URL())
				}
				var said bytes.Buffer
				o.Logger = slog.New(slog.NewTextHandler(&said, nil))
				db := database(t, client, s.URL())
				d, err := pglock.NewSQL(t.Context(), db, o)
				alone := client == "postgres" && !listen // nobody knows how to make connections of our own
				if alone && technique != "rows" {
					if !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "Options.Listen") {
						t.Errorf("%s by %s: %v; want it refused, and Listen named", technique, client, err)
					}
					continue
				}
				if err != nil {
					t.Fatalf("%s by %s, named %v: %v", technique, client, listen, err)
				}
				if told := d.Traits().Events == driver.AllKinds; told == alone || strings.Contains(said.String(), "ask instead of being told") != alone {
					t.Errorf("%s by %s, named %v: Events are %v, and it says: %s", technique, client, listen, d.Traits().Events, said.String())
				}
				var all [2]driver.Session
				for i := range all {
					if all[i], err = d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute}); err != nil {
						t.Fatal(err)
					}
				}
				mine, next := mutex(technique+client), mutex(technique+client)
				asks(t, all[0], mine, true)
				asks(t, all[1], next, false)
				if r, err := all[0].Renew(t.Context()); err != nil || len(r.Lost) > 0 {
					t.Errorf("%s by %s: Renew: %+v, %v", technique, client, r, err)
				}
				leaves(t, all[0], mine, true)
				awaits(t, all[1], next)
				leaves(t, all[1], next, true)
				if err := d.Close(t.Context()); err != nil {
					t.Error(err)
				}
				if err := db.PingContext(t.Context()); err != nil {
					t.Errorf("the program's database after Close: %v", err)
				}
			}
		}
	}
}

// A server that ends all connections, and defaults of a role that suit no lock, by clients that
// tell less than pgx's pool.
func TestSQLHostile(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for _, client := range []string{"pgx", "postgres"} {
		db := database(t, client, s.URL()+"&default_transaction_isolation=serializable")
		db.SetMaxIdleConns(8)
		d, err := pglock.NewSQL(t.Context(), db, &pglock.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		session, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		several := make([]*sql.Conn, 8) // more than one that ends unnoticed
		for i := range several {
			if several[i], err = db.Conn(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range several {
			_ = c.Close()
		}
		c := mutex("hostile")
		asks(t, session, c, true)
		ask[int](t, s, "select count(pg_terminate_backend(pid, 10000)) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend'")
		leaves(t, session, c, true)

		readOnly := database(t, client, s.URL()+"&default_transaction_read_only=on")
		d, err = pglock.NewSQL(t.Context(), readOnly, &pglock.Options{Logger: slog.New(slog.DiscardHandler)})
		if err == nil {
			session, err = d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
		}
		if err == nil { // lib/pq begins each transaction by what it wants
			_, err = session.Acquire(t.Context(), mutex("read-only"))
		}
		if !errors.Is(err, driver.ErrUnable) || !strings.Contains(err.Error(), "read-only") {
			t.Errorf("%s, by default read-only: %v; want ErrUnable", client, err)
		}
	}
}

// A pool of two, and fifty that wait: nobody keeps a connection of the program's.
func TestSQLPoolIsNotHeld(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	db := database(t, "pgx", s.URL())
	db.SetMaxOpenConns(2)
	d, err := pglock.NewSQL(t.Context(), db, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(t.Context())
	var all [50]driver.Session
	var claims [50]driver.Claim
	for i := range all {
		if all[i], err = d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
		claims[i] = mutex("many")
		asks(t, all[i], claims[i], i == 0)
	}
	for i := range all {
		awaits(t, all[i], claims[i])
		leaves(t, all[i], claims[i], true)
	}
}
