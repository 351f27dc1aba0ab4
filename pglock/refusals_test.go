package pglock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/pglock"
)

// admits writes who may connect how, and has the server read it.
func admits(t *testing.T, s *servertest.Server, rules ...string) {
	t.Helper()
	file := ask[string](t, s, "select current_setting('hba_file')")
	execute(t, s, fmt.Sprintf("copy (select unnest(array['%s'])) to '%s'", strings.Join(append([]string{"host all postgres 127.0.0.1/32 trust"}, rules...), "','"), file))
	before := ask[time.Time](t, s, "select pg_conf_load_time()")
	execute(t, s, "select pg_reload_conf()")
	until(t, "the rules are read", func() bool { return ask[time.Time](t, s, "select pg_conf_load_time()").After(before) })
}

// Whoever may not connect hears why, and nobody reads his password.
func TestWhoMayNotConnect(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	execute(t, s, "create role app login password 'right'; create role plain login password 'hunter2'; create role out login password 'hunter2'")
	admits(t, s, "host all app 127.0.0.1/32 scram-sha-256", "hostssl all plain 127.0.0.1/32 scram-sha-256")
	as := func(who string) string { return strings.Replace(s.URL(), "postgres@", who+":hunter2@", 1) }
	for _, technique := range leases {
		for who, want := range map[string]struct{ says, right string }{
			"app":    {`password authentication failed for user "app"`, "want the role's password, in the URL as postgres://ROLE:PASSWORD@"},
			"plain":  {"no encryption", "sslmode=require"},
			"out":    {"no pg_hba.conf entry", "want a role that there is, and whom the server's pg_hba.conf admits"},
			"nobody": {"no pg_hba.conf entry", "want a role that there is"},
		} {
			_, err := enter(t, by(as(who), technique), time.Minute)
			if !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), want.says) || !strings.Contains(err.Error(), want.right) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s as %s: %v; want %+v, and no password", technique, who, err, want)
			}
		}
		for url, right := range map[string]string{
			strings.Replace(s.URL(), "disable", "require", 1):                                      "want sslmode=disable",
			"postgres://app:hunter2@" + impostor(t) + "/postgres?sslmode=verify-full":              "sslrootcert=FILE",
			strings.Replace(s.URL(), "disable", "verify-full", 1) + "&sslrootcert=/nowhere/ca.pem": "/nowhere/ca.pem",
		} {
			_, err := enter(t, by(url, technique), time.Minute)
			if err == nil || !strings.Contains(err.Error(), right) || strings.Contains(err.Error(), "hunter2") || !strings.Contains(url, "nowhere") && !errors.Is(err, driver.ErrRefused) {
				t.Errorf("%s by TLS: %v; want %s, and no password", technique, err, right)
			}
		}
	}
	if err := pglock.Migrate(t.Context(), pool(t, as("app")), nil); err == nil || !strings.Contains(err.Error(), "password authentication failed") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("migrate: %v", err)
	}
}

// impostor is a server whose certificate nobody has signed.
func impostor(t *testing.T) (addr string) {
	t.Helper()
	web := httptest.NewTLSServer(nil)
	t.Cleanup(web.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := io.ReadFull(c, make([]byte, 8)); err == nil { // it asks for TLS
					_, _ = c.Write([]byte("S"))
					_ = tls.Server(c, web.TLS).HandshakeContext(t.Context())
				}
			}()
		}
	}()
	return l.Addr().String()
}

// A role without rights is told which it lacks by every technique, and has changed nothing.
func TestRightsOfEveryTechnique(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	execute(t, s, "create role app login")
	url := strings.Replace(s.URL(), "postgres@", "app@", 1)
	for _, grant := range []string{"", "usage on schema interlock", "select on interlock.version"} {
		if grant != "" {
			execute(t, s, "grant "+grant+" to app")
		}
		for _, technique := range leases {
			session, err := enter(t, by(url, technique), time.Minute)
			if err == nil {
				_, err = session.Acquire(t.Context(), mutex("rights"))
			}
			if !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "the role needs") {
				t.Errorf("%s with %q: %v; want that it says what the role needs", technique, grant, err)
			}
		}
	}
	if n := ask[int](t, s, "select (select count(*) from interlock.lock) + (select count(*) from interlock.held) + (select count(*) from interlock.session)"); n != 0 {
		t.Errorf("%d rows were written", n)
	}
	execute(t, s, "grant select, insert, update on interlock.held to app; grant select, usage, update on interlock.token to app")
	for _, technique := range leases[1:] {
		a, b := user(t, by(url, technique)), user(t, by(url, technique))
		mine, next := mutex("rights"), mutex("rights")
		asks(t, a, mine, true)
		asks(t, b, next, false)
		leaves(t, a, mine, true)
		awaits(t, b, next)
		leaves(t, b, next, true)
	}
}

// A schema that this program does not know is refused by every technique that uses its tables.
func TestVersionsOfEveryTechnique(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for version, want := range map[int]string{0: "is empty or not ours", 2: "", 3: "run a newer one"} {
		execute(t, s, fmt.Sprint("update interlock.version set version = ", version))
		for _, technique := range leases {
			_, err := enter(t, by(s.URL(), technique), time.Minute)
			if want == "" && err != nil || want != "" && (!errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s, a schema of version %d: %v; want %q", technique, version, err, want)
			}
		}
	}
}

// A server that has no connection left says so to whoever asks. It loses nothing, and when it has
// some again all goes on.
func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	execute(t, s, "create role app login superuser")
	url := strings.Replace(s.URL(), "postgres@", "app@", 1)
	for technique, limit := range map[string]int{"rows": 1, "session": 1, "rowlock": 2} { // those that a lock needs
		execute(t, s, "alter role app superuser")
		a, b := user(t, by(s.URL(), technique)), user(t, by(url, technique)+"&pool_max_conns=1&timeout=10s")
		mine, next := mutex("full/"+technique), mutex("full/"+technique)
		asks(t, b, next, true)
		leaves(t, b, next, true)
		execute(t, s, "alter role app nosuperuser connection limit "+fmt.Sprint(limit)+"; grant all on schema interlock to app; "+
			"grant all on all tables in schema interlock to app; grant all on all sequences in schema interlock to app")
		if _, err := enter(t, by(url, technique), time.Minute); !errors.Is(err, driver.ErrNotSent) || !strings.Contains(err.Error(), "too many connections") {
			t.Errorf("%s: one more client: %v; want that there are too many connections", technique, err)
		}
		asks(t, a, mine, true)
		next = mutex(mine.Name)
		other := next
		if technique == "rows" {
			asks(t, b, next, false) // who waits asks, since he cannot be told
		} else {
			blocks := mutex("full/more/" + technique)
			asks(t, b, blocks, true) // takes what is left
			if _, err := b.Acquire(t.Context(), other); !errors.Is(err, driver.ErrNotSent) || !strings.Contains(err.Error(), "too many connections") {
				t.Errorf("%s: a claim that needs one connection more: %v; want that there are too many", technique, err)
			}
			leaves(t, b, other, false)
			if r, err := b.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
				t.Errorf("%s: Renew: %+v, %v", technique, r, err)
			}
			leaves(t, b, blocks, true)
			execute(t, s, "alter role app connection limit -1")
			next = mutex(mine.Name)
			asks(t, b, next, false)
		}
		leaves(t, a, mine, true)
		awaits(t, b, next)
		leaves(t, b, next, true)
		execute(t, s, "alter role app connection limit -1")
	}
}

// How many connections each technique has: rows those of the pool and one to listen over while
// somebody waits; row locks one for each lock.
func TestConnectionsOfEveryTechnique(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	config, err := pgxpool.ParseConfig(s.URL() + "&pool_max_conns=1&application_name=interlock")
	if err != nil {
		t.Fatal(err)
	}
	for technique, want := range map[string]struct{ holds, waits int }{"rows": {1, 2}, "session": {1, 2}, "rowlock": {4, 5}} {
		p, err := pgxpool.NewWithConfig(t.Context(), config.Copy())
		if err != nil {
			t.Fatal(err)
		}
		d, err := pglock.New(t.Context(), p, &pglock.Options{Technique: technique})
		if err != nil {
			t.Fatal(err)
		}
		session, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		var all []driver.Claim
		for i := range 3 {
			c := mutex(fmt.Sprint("counted/", i))
			asks(t, session, c, true)
			all = append(all, c)
		}
		until(t, fmt.Sprint(technique, " has ", want.holds, " connections for three locks"), func() bool { return backends(t, s, "") == want.holds })
		next := mutex(all[0].Name)
		asks(t, session, next, false)
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() { defer close(gone); _, _ = session.Wait(ctx, next) }()
		until(t, fmt.Sprint(technique, " has ", want.waits, " connections while one waits"), func() bool { return backends(t, s, "") == want.waits })
		cancel()
		<-gone
		if err := d.Close(t.Context()); err != nil {
			t.Error(err)
		}
		p.Close()
		until(t, technique+" has no connection when it is closed", func() bool { return backends(t, s, "") == 0 })
	}
}
