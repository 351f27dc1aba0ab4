package pglock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
	"github.com/interlock-go/interlock/pglock"
)

// withConnections tries what holds of both techniques whose locks live with connections.
func withConnections(t *testing.T, try func(t *testing.T, technique string)) {
	t.Helper()
	withBoth(t, func(t *testing.T, technique string) {
		if testing.Short() && technique == "rowlock" {
			t.Skip("the laws show as much of it: make proof")
		}
		try(t, technique)
	})
}

// withBoth is withConnections for what no law shows of both in short.
func withBoth(t *testing.T, try func(t *testing.T, technique string)) {
	t.Helper()
	t.Parallel()
	for _, technique := range leases[1:] {
		t.Run(technique, func(t *testing.T) {
			t.Parallel()
			try(t, technique)
		})
	}
}

// A pooler that others keep busy gives a client the same backend twice by chance.
func TestS01_SessionBehindABusyPooler(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	shared := servertest.PgBouncer(t, s, "default_pool_size=10")
	ctx, cancel := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	defer busy.Wait()
	defer cancel()
	for range 8 {
		conn := connect(t, shared)
		busy.Go(func() {
			defer conn.Close(context.Background())
			for ctx.Err() == nil {
				_, _ = conn.PgConn().Exec(ctx, "begin; select pg_sleep(0.0005); commit").ReadAll()
			}
		})
	}
	for range 60 {
		if d, err := driver.OpenURL(t.Context(), bySession(shared)); !errors.Is(err, driver.ErrRefused) {
			t.Fatalf("through a busy pooler that shares connections: %v, %v; want that it is refused", d, err)
		}
	}
}

// What listen names has to be the store's own server and database: locks are kept there.
func TestS01_ListenLeadsElsewhere(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	execute(t, s, "create database elsewhere")
	elsewhere, err := pgx.ParseConfig(strings.Replace(s.URL(), "/postgres?", "/elsewhere?", 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, technique := range []string{"session", "rows"} {
		var said bytes.Buffer
		o := &pglock.Options{Technique: technique, Listen: elsewhere, Logger: slog.New(slog.NewTextHandler(&said, nil))}
		d, err := pglock.New(t.Context(), pool(t, s.URL()), o)
		switch {
		case technique == "session" && (!errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "listen leads to another server or another database")):
			t.Errorf("session: %v; want that it is refused", err)
		case technique == "rows" && (err != nil || d.Traits().Events != 0 || !strings.Contains(said.String(), "and the store's database")):
			t.Errorf("rows: %v, said: %s; want that it asks, and says so", err, said.String())
		}
	}
}

// Behind a pooler that shares connections two clients have one advisory lock: it is refused there,
// also while nobody else uses the pooler.
func TestS01_SessionBehindAPooler(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	shared := servertest.PgBouncer(t, s)
	a, b := byHand(t, shared), byHand(t, shared)
	if !a("select pg_try_advisory_lock(7)") || !b("select pg_try_advisory_lock(7)") {
		t.Error("the control: two clients do not have one lock, so this pooler shows nothing")
	}
	a("select pg_advisory_unlock(7)")
	b("select pg_advisory_unlock(7)")
	for _, technique := range []string{"session", "rowlock"} {
		if _, err := driver.OpenURL(t.Context(), by(shared.URL(), technique)); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "behind a pooler that shares connections") {
			t.Errorf("through a pooler that shares connections: %v; want that it is refused", err)
		}
	}
	if !a("select count(*) = 0 from pg_settings where name in ('idle_session_timeout', 'tcp_keepalives_idle') and source = 'session'") {
		t.Error("settings are left behind on a connection of the pooler")
	}
	cycle(t, bySession(servertest.PgBouncer(t, s, "pool_mode=session", "default_pool_size=20", "server_reset_query=DISCARD ALL")))
	direct, err := pgx.ParseConfig(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	d, err := pglock.New(t.Context(), pool(t, shared.URL()), &pglock.Options{Technique: "session", Listen: direct})
	if err != nil {
		t.Fatalf("with the server's own address: %v", err)
	}
	if err := d.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestS08_AConnectionOfASessionEnds(t *testing.T) {
	withConnections(t, func(t *testing.T, technique string) {
		s := migrated(t)
		storetest.ConnectionEnds(t, by(s.URL(), technique), func() {
			execute(t, s, "select pg_terminate_backend(b) from pg_stat_activity, unnest(pg_blocking_pids(pid)) b where application_name like 'interlock%'")
		})
	})
}

// Who gives up waiting in the moment in which the lock is handed over leaves nothing behind, and
// the connection is used again.
func TestS06_AWaitOfASessionIsGivenUp(t *testing.T) {
	withConnections(t, func(t *testing.T, technique string) {
		s := migrated(t)
		givesUp(t, s, by(s.URL(), technique), map[string]string{
			"session": "select count(*) from pg_locks where locktype = 'advisory'", "rowlock": "select count(*) from pg_stat_activity where application_name like 'interlock%' and xact_start is not null",
		}[technique])
		if n := backends(t, s, ""); n > 6 {
			t.Errorf("%d connections for two sessions that have nothing", n)
		}
	})
}

// Tokens grow over a crash of the server, and when the database's sequence has lost what it gave.
func TestS16S17_TokensOfSessionsGrow(t *testing.T) {
	withConnections(t, func(t *testing.T, technique string) {
		s := migrated(t)
		last := uint64(0)
		for i := range 6 {
			a, mine := user(t, by(s.URL(), technique)), mutex("tokens")
			g := asks(t, a, mine, true)
			if g.Fence < last+driver.Stride {
				t.Errorf("token %d after %d", g.Fence, last)
			}
			last = g.Fence
			switch i {
			case 0:
				if err := errors.Join(s.Kill(), s.Restart(t.Context())); err != nil {
					t.Fatal(err)
				}
			case 1: // as a standby that lacks the last two minutes
				execute(t, s, fmt.Sprintf("select setval('interlock.token', %d)", last-120_000_000))
			case 2: // or half a minute, or a third of a second
				execute(t, s, fmt.Sprintf("select setval('interlock.token', %d)", last-30_000_000))
			case 3:
				execute(t, s, fmt.Sprintf("select setval('interlock.token', %d)", last-300_000))
			case 4:
				execute(t, s, fmt.Sprintf("select setval('interlock.token', %d)", last))
			}
			_, _ = a.Release(t.Context(), mine) // a crash has taken it
		}
	})
}

func TestS04_ASessionIsNotRenewed(t *testing.T) {
	withBoth(t, func(t *testing.T, technique string) { storetest.NotRenewed(t, by(migrated(t).URL(), technique)) })
}

func TestS07_ARenewalIsLeftRunning(t *testing.T) {
	withConnections(t, func(t *testing.T, technique string) {
		s := migrated(t)
		storetest.RenewalUnanswered(t, s, by(s.URL(), technique))
	})
}
