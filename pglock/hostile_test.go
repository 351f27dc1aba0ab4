package pglock_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/pglock"
)

// What an administrator may set does not break a lock in a program's transaction, or is said, with
// what would be right.
func TestSettingsOfInTx(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for _, set := range []struct{ setting, says, later string }{
		{"default_transaction_isolation = 'serializable'", "the transaction is serializable: want read committed", "the transaction is serializable, and reads"},
		{"default_transaction_read_only = on", "the transaction is read-only", ""},
		{"statement_timeout = '100ms'", "", ""},
		{"lock_timeout = '100ms'", "", ""},
		{"idle_session_timeout = '10s'", "", ""},
		{"synchronous_commit = 'off'", "", ""},
		{"search_path = ''", "", ""},
		{"standard_conforming_strings = off", "", ""},
	} {
		// The default of the role is that of a transaction which names no level of its own.
		p := pool(t, s.URL()+"&options="+strings.NewReplacer(" ", "", "=", "%3D", "'", "").Replace("-c%20"+set.setting))
		for _, o := range []*pglock.TxOptions{nil, {Advisory: true}} {
			tx, err := p.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			token, err := pglock.InTx(t.Context(), tx, "settings", o)
			want := set.says
			if o != nil && set.later != "" {
				want = set.later
			}
			switch {
			case want != "" && (!errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), want)):
				t.Errorf("%s, %+v: %v; want that it is refused: %s", set.setting, o, err, want)
			case want == "" && (err != nil || token == 0):
				t.Errorf("%s, %+v: token %d, %v", set.setting, o, token, err)
			}
			if want == "" && strings.Contains(set.setting, "_timeout = '100ms'") {
				other, err := p.Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := pglock.InTx(t.Context(), other, "settings", o); !errors.Is(err, driver.ErrNotSent) || !strings.Contains(err.Error(), "timeout") {
					t.Errorf("%s, %+v, of what another one has: %v; want a timeout", set.setting, o, err)
				}
				_ = other.Rollback(t.Context())
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Error(err)
			}
			// Nothing that the lock needed is left on the connection.
			var left string
			if err := p.QueryRow(t.Context(), "select coalesce(string_agg(name, ' '), '') from pg_settings where source = 'session'").Scan(&left); err != nil || left != "" {
				t.Errorf("%s: left behind: %s, %v", set.setting, left, err)
			}
		}
	}
}

// A pool of four connections and fifty who wait never locks itself up, whatever the technique:
// leases take none of it, and who has the lock of a transaction needs no other connection to end
// it.
func TestPoolOfFour(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for _, technique := range leases[1:] {
		p := pool(t, s.URL()+"&pool_max_conns=4")
		d, err := pglock.New(t.Context(), p, &pglock.Options{Technique: technique, MaxWaiting: 50, Timeout: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		session, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		mine := mutex("pool/" + technique)
		asks(t, session, mine, true)
		var all sync.WaitGroup
		for range 50 {
			next := mutex(mine.Name)
			asks(t, session, next, false)
			all.Go(func() {
				awaits(t, session, next)
				leaves(t, session, next, true)
			})
		}
		if n := p.Stat().TotalConns(); n != 0 {
			t.Errorf("%s: %d connections of the program's pool are used, want none", technique, n)
		}
		leaves(t, session, mine, true)
		all.Wait()
		if err := d.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for _, o := range []*pglock.TxOptions{nil, {Advisory: true}} {
		p := pool(t, s.URL()+"&pool_max_conns=4")
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				err := pgx.BeginFunc(ctx, p, func(tx pgx.Tx) error {
					_, err := pglock.InTx(ctx, tx, "pool", o)
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
}

// A password that is fetched for each connection, as a cloud's token of the hour is, is fetched for
// those that are not of the pool, too.
func TestBeforeConnect(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for _, technique := range []string{"session", "rowlock", "rows"} {
		config, err := pgxpool.ParseConfig(strings.Replace(s.URL(), "postgres@", "expired@", 1))
		if err != nil {
			t.Fatal(err)
		}
		config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
			c.User = "postgres"
			return nil
		}
		p, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		d, err := pglock.New(t.Context(), p, &pglock.Options{Technique: technique})
		if err != nil {
			t.Fatalf("%s: %v", technique, err)
		}
		session, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
		if err != nil {
			t.Fatalf("%s: %v", technique, err)
		}
		mine, next := mutex("token"), mutex("token")
		asks(t, session, mine, true)
		asks(t, session, next, false)
		told := make(chan driver.Grant, 1)
		go func() { told <- awaits(t, session, next) }()
		if technique == "rows" {
			until(t, "somebody listens", func() bool {
				return ask[int](t, s, "select count(*) from pg_stat_activity where query like '%listen \"il%' and pid <> pg_backend_pid()") == 1
			})
		}
		leaves(t, session, mine, true)
		<-told
		leaves(t, session, next, true)
		if err := d.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// Rows through a pooler that shares connections: who waits is told over a connection to the server
// itself where that is named, and asks where it is not; one that gives each client a backend of its
// own passes on what is told. Nothing stays set on the pooler's connections.
func TestRowsBehindAPooler(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	b := servertest.PgBouncer(t, s, "default_pool_size=2")
	listen := strings.NewReplacer(":", "%3A", "/", "%2F", "?", "%3F", "=", "%3D", "@", "%40").Replace(s.URL())
	own := servertest.PgBouncer(t, s, "pool_mode=session", "default_pool_size=20", "server_reset_query=DISCARD ALL")
	for url, events := range map[string]bool{b.URL(): false, b.URL() + "&listen=" + listen: true, own.URL(): true} {
		cycle(t, url)
		d, err := driver.OpenURL(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		if d.Traits().Events.Has(driver.Mutex) != events {
			t.Errorf("%s: Events are %v", url, d.Traits().Events)
		}
		session, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		mine, next := mutex("pooled"), mutex("pooled")
		asks(t, session, mine, true)
		asks(t, session, next, false)
		if other := asks(t, user(t, s.URL()), tries("pooled"), false); other.Held {
			t.Error("held twice")
		}
		told := make(chan driver.Grant, 1)
		go func() { told <- awaits(t, session, next) }()
		if events {
			until(t, "somebody listens", func() bool {
				return ask[int](t, s, "select count(*) from pg_stat_activity where query like '%listen \"il%' and pid <> pg_backend_pid()") > 0
			})
		}
		leaves(t, session, mine, true)
		<-told
		leaves(t, session, next, true)
		if err := d.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	// The pooler sets some for each client, and every transaction has an isolation of its own.
	left := "select coalesce(string_agg(name, ' '), '') from pg_settings where source = 'session' and name not in " +
		"('application_name', 'client_encoding', 'DateStyle', 'TimeZone', 'standard_conforming_strings', 'transaction_isolation')"
	conn := connect(t, b)
	defer conn.Close(t.Context())
	var names string
	if err := conn.QueryRow(t.Context(), left, pgx.QueryExecModeSimpleProtocol).Scan(&names); err != nil || names != "" {
		t.Errorf("left behind on the pooler's connection: %s, %v", names, err)
	}
}

// deafLog is a log that blocks when it is told that nobody can be told.
type deafLog struct {
	slog.Handler
	told, open chan struct{}
}

func (l deafLog) Enabled(context.Context, slog.Level) bool { return true }

func (l deafLog) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "claims that wait ask, since") {
		l.told <- struct{}{}
		<-l.open
	}
	return nil
}

// Where nobody can be told any more, who waits asks, also while the log blocks that is told so; and
// Close does not wait for that.
func TestALogThatBlocksHoldsUpNobody(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	w := wire.New(t, s.Addr())
	listen, err := pgx.ParseConfig(strings.Replace(s.URL(), s.Addr(), w.Addr(), 1))
	if err != nil {
		t.Fatal(err)
	}
	log := deafLog{slog.DiscardHandler, make(chan struct{}, 100), make(chan struct{})}
	defer close(log.open)
	d, err := pglock.New(t.Context(), pool(t, s.URL()), &pglock.Options{Listen: listen, Logger: slog.New(log)})
	if err != nil {
		t.Fatal(err)
	}
	w.Refuse()
	w.Cut()
	session, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	mine, next := mutex("deaf"), mutex("deaf")
	asks(t, session, mine, true)
	asks(t, session, next, false)
	told := make(chan driver.Grant, 1)
	go func() {
		defer close(told)
		told <- awaits(t, session, next)
	}()
	<-log.told
	leaves(t, session, mine, true)
	if <-told; t.Failed() {
		return
	}
	leaves(t, session, next, true)
	if err := d.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A way to the server that answers and loses what was not asked for is noticed at open, also where
// each client has a backend of its own.
func TestRowsWhereNobodyIsTold(t *testing.T) {
	t.Parallel()
	own := servertest.PgBouncer(t, migrated(t), "pool_mode=session", "default_pool_size=20", "server_reset_query=DISCARD ALL")
	w := wire.New(t, own.Addr())
	w.Drop(func(way wire.Direction, packet []byte) bool { return way == wire.Replies && packet[0] == 'A' })
	d, err := driver.OpenURL(t.Context(), strings.Replace(own.URL(), own.Addr(), w.Addr(), 1))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(t.Context())
	if d.Traits().Events == driver.AllKinds {
		t.Error("a driver that hears nothing promises that its claims are told")
	}
}

// What a pooler answers when it has lost the server in the middle of a statement does not say that
// this was not carried out.
func TestAPoolerLosesTheServer(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	w := wire.New(t, s.Addr())
	_, port, _ := strings.Cut(w.Addr(), ":")
	b := servertest.PgBouncer(t, s, "[databases]", "* = host=127.0.0.1 user=postgres port="+port)
	session, c := user(t, b.URL()), mutex("lost")
	heal := w.Stall(wire.Replies)
	answer := make(chan error, 1)
	go func() {
		_, err := session.Acquire(t.Context(), c)
		answer <- err
	}()
	until(t, "the lock is taken", func() bool {
		return ask[int](t, s, "select count(*) from interlock.lock where cardinality(line) > 0") > 0
	})
	w.Cut()
	heal()
	if err := <-answer; errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused) {
		t.Errorf("%v; want the lock, or an error that says nothing of what was done", err)
	}
	leaves(t, session, c, true)
}
