package pglock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/pglock"
)

// Who gives up while his statement waits for a row is back at once. The statement goes on, and its
// connection serves the next one; a Release comes behind it and leaves nothing there.
func TestACallerWhoGoesLeavesTheConnection(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	a := user(t, s.URL()+"&pool_max_conns=1&timeout=60s")
	asks(t, a, tries("before"), true) // makes the connection
	const pid = "select pid from pg_stat_activity where application_name = 'interlock'"
	mine := ask[int](t, s, pid)
	execute(t, s, "insert into interlock.lock values ('busy', 0, '{}')")
	tx, err := pool(t, s.URL()).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), "select from interlock.lock where name = 'busy' for update"); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	c, back := mutex("busy"), make(chan error, 1)
	go func() { _, err := a.Acquire(ctx, c); back <- err }()
	until(t, "the statement waits for the row", func() bool {
		return ask[int](t, s, "select count(*) from pg_stat_activity where wait_event_type = 'Lock'") == 1
	})
	leave()
	if err := <-back; !errors.Is(err, context.Canceled) || errors.Is(err, driver.ErrNotSent) {
		t.Errorf("who gave up got %v; want %v, and that nobody knows what came of it", err, context.Canceled)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Release(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if now := ask[int](t, s, pid); now != mine {
		t.Errorf("the connection was given up with its caller: its pid is %d, and was %d", now, mine)
	}
	if n := ask[int](t, s, "select cardinality(line) from interlock.lock where name = 'busy'"); n != 0 {
		t.Errorf("%d claims stand there for nobody", n)
	}
}

// One statement is prepared on a connection of the program's pool, and nothing breaks when the
// program discards it, or when a pooler that nobody noticed has other connections for every
// transaction.
func TestWhatIsPreparedIsLost(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	p := pool(t, s.URL()+"&pool_max_conns=1")
	simply := func(sql string) (n int) {
		t.Helper()
		if err := p.QueryRow(t.Context(), sql, pgx.QueryExecModeSimpleProtocol).Scan(&n); err != nil && !errors.Is(err, pgx.ErrNoRows) {
			t.Fatal(err)
		}
		return n
	}
	over := func(url string, harm func(*pglock.Driver)) {
		t.Helper()
		d, err := pglock.New(t.Context(), p, nil)
		if url != "" {
			d, err = driver.OpenURL(t.Context(), url)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close(context.Background()) })
		session, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			c := mutex("prepared")
			asks(t, session, c, true)
			harm(d.(*pglock.Driver))
			leaves(t, session, c, true)
		}
	}
	const prepared = "select count(*) from pg_prepared_statements where name like 'interlock_%'"
	n := 0
	over("", func(*pglock.Driver) {
		n = max(n, simply(prepared))
		simply("discard all")
	})
	if n != 1 {
		t.Errorf("%d statements were prepared, want one", n)
	}
	url := servertest.PgBouncer(t, s).URL()
	other := pool(t, url+"&pool_max_conns=4&default_query_exec_mode=simple_protocol")
	over(url, func(d *pglock.Driver) {
		d.Prepares()
		tx, err := other.Begin(t.Context()) // has the server's connection that was used last
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	})
}
