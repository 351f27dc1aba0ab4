package pglock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/pglock"
)

// bySession is the URL of technique session.
func bySession(s *servertest.Server, more ...string) string {
	return strings.Join(append([]string{s.URL(), "technique=session"}, more...), "&")
}

// backends counts the connections of sessions, all of them or those in a state.
func backends(t *testing.T, s *servertest.Server, where string) int {
	t.Helper()
	return ask[int](t, s, "select count(*) from pg_stat_activity where application_name like 'interlock%' "+where)
}

// byHand is a program that takes locks in plain SQL.
func byHand(t *testing.T, s *servertest.Server) func(sql string) bool {
	t.Helper()
	conn := connect(t, s)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return func(sql string) (got bool) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), sql, pgx.QueryExecModeSimpleProtocol).Scan(&got); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return got
	}
}

// A lock that is taken by hand under the key of a convention excludes ours and is excluded by it, and so does one in a transaction.
func TestForeignKeys(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for _, c := range []struct{ keys, name, key string }{
		{"with_advisory_lock", "foo", "208889121, 0"},
		{"django", "foo", "-1938594527"},
		{"symfony", "foo", "2356372769"},
		{"dotnet", "foo", "-843088897, -1"},
		{"dotnet", "a-rather-long-lock-name", "-4523304115101190793"},
		{"dotnet", "00000000000000ff", "255"},
		{"dotnet", "00000001,ffffffff", "1, -1"},
		{"tooz", "foo", "172, 189"},
		{"number", "-9223372036854775808", "-9223372036854775808"},
		{"number", "7,-8", "7, -8"},
		{"interlock", "foo", "154406090734915749"},
	} {
		t.Run(c.keys+"/"+c.name, func(t *testing.T) {
			a, theirs := user(t, bySession(s, "keys="+c.keys)), byHand(t, s)
			for _, mode := range []string{"", "_shared"} {
				if !theirs("select pg_try_advisory_lock" + mode + "(" + c.key + ")") {
					t.Fatalf("key (%s) is not free", c.key)
				}
				mine := mutex(c.name)
				asks(t, a, mine, false)
				theirs("select pg_advisory_unlock" + mode + "(" + c.key + ")")
				if g := awaits(t, a, mine); g.Fence == 0 {
					t.Error("no token")
				}
				if theirs("select pg_try_advisory_lock" + mode + "(" + c.key + ")") {
					t.Errorf("key (%s) is not excluded by ours", c.key)
				}
				tx, err := clients["pgx"](t, s.URL())("read committed")
				if err != nil {
					t.Fatal(err)
				}
				if err := tx.exec("set local lock_timeout = '20ms'"); err != nil {
					t.Fatal(err)
				}
				if _, err := tx.lock(c.name, &pglock.TxOptions{Advisory: true, Keys: c.keys}); state(err) != "55P03" {
					t.Errorf("a transaction beside ours: %v; want a timeout", err)
				}
				tx.undo()
				leaves(t, a, mine, true)
			}
		})
	}
	a := user(t, bySession(s, "keys=number"))
	for _, name := range []string{"foo", "9223372036854775808", "1,2,3", "4294967296,1", ""} {
		if _, err := a.Acquire(t.Context(), mutex(name)); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("keys=number, name %q: %v; want that it is refused", name, err)
		}
	}
}

// Which way of locking excludes which: the table of the backend's page.
func TestWhatExcludesWhat(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	begin := clients["pgx"](t, s.URL())
	inTx := func(o *pglock.TxOptions) func(t *testing.T) (held bool, leave func()) {
		return func(t *testing.T) (bool, func()) {
			tx, err := begin("read committed")
			if err != nil {
				t.Fatal(err)
			}
			if err := tx.exec("set local lock_timeout = '20ms'"); err != nil {
				t.Fatal(err)
			}
			_, err = tx.lock("table", o)
			if err != nil && state(err) != "55P03" {
				t.Fatal(err)
			}
			return err == nil, tx.undo
		}
	}
	lease := func(url string) func(t *testing.T) (bool, func()) {
		return func(t *testing.T) (bool, func()) {
			a, c := user(t, url), tries("table")
			g, err := a.Acquire(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			return g.Held, func() { leaves(t, a, c, g.Held) }
		}
	}
	ways := []struct {
		name string
		take func(t *testing.T) (bool, func())
		with string // what it excludes
	}{
		{"rows", lease(s.URL()), "rows"},
		{"session", lease(bySession(s)), "session, InTx by advisory"},
		{"rowlock", lease(s.URL() + "&technique=rowlock"), "rowlock, InTx"},
		{"InTx", inTx(nil), "rowlock, InTx"},
		{"InTx by advisory", inTx(&pglock.TxOptions{Advisory: true}), "session, InTx by advisory"},
	}
	for _, first := range ways {
		held, leave := first.take(t)
		if !held {
			t.Fatalf("%s is not free", first.name)
		}
		for _, second := range ways {
			excluded := false
			for _, name := range strings.Split(first.with, ", ") {
				excluded = excluded || name == second.name
			}
			held, leave := second.take(t)
			if held == excluded {
				t.Errorf("%s beside %s: held %v", second.name, first.name, held)
			}
			leave()
		}
		leave()
	}
}

// Behind a pooler that shares connections two clients have one advisory lock: it is refused there, also while nobody else uses the pooler.
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
	if _, err := driver.OpenURL(t.Context(), bySession(shared)); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "behind a pooler that shares connections") {
		t.Errorf("through a pooler that shares connections: %v; want that it is refused", err)
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

// A connection that ends takes its locks along, and no others: their owners are told at once.
func TestS08_AConnectionOfASessionEnds(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	a, b := user(t, bySession(s)), user(t, bySession(s))
	theirs, waited := mutex("waited"), mutex("waited")
	asks(t, b, theirs, true)
	asks(t, a, waited, false)
	leaves(t, b, theirs, true)
	awaits(t, a, waited) // on a connection of its own
	mine, next := mutex("at once"), mutex("at once")
	asks(t, a, mine, true)
	asks(t, b, next, false)
	execute(t, s, "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted and "+
		"(classid, objid) in (select classid, objid from pg_locks where locktype = 'advisory' and not granted)")
	select {
	case id := <-a.(driver.LossNotifier).Lost():
		if id != mine.ID {
			t.Errorf("another claim is told to be lost")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the connection was ended in the database, and its holder is not told")
	}
	awaits(t, b, next)
	if r, err := a.Renew(t.Context()); err != nil || len(r.Lost) != 1 || r.Lost[0] != mine.ID {
		t.Errorf("Renew: %+v, %v; want one claim lost", r, err)
	}
	if _, err := a.Acquire(t.Context(), mine); !errors.Is(err, driver.ErrGone) {
		t.Errorf("Acquire of what is lost: %v", err)
	}
	leaves(t, a, mine, false)
	leaves(t, a, waited, true)
	leaves(t, b, next, true)
	other := mutex("at once")
	asks(t, a, other, true) // the session goes on
	leaves(t, a, other, true)
}

// Who gives up waiting in the moment in which the lock is handed over leaves nothing behind, and the connection is used again.
func TestS06_AWaitOfASessionIsGivenUp(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	a, b := user(t, bySession(s)), user(t, bySession(s))
	for i := range 150 {
		mine, next := mutex("given up"), mutex("given up")
		asks(t, a, mine, true)
		asks(t, b, next, false)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*20*time.Microsecond)
		var both sync.WaitGroup
		both.Go(func() { _, _ = b.Wait(ctx, next) })
		both.Go(func() { leaves(t, a, mine, true) })
		both.Wait()
		cancel()
		if _, err := b.Release(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		if n := ask[int](t, s, "select count(*) from pg_locks where locktype = 'advisory'"); n != 0 {
			t.Fatalf("%d locks stand there for nobody, after round %d", n, i)
		}
	}
	if n := backends(t, s, ""); n > 5 {
		t.Errorf("%d connections for two sessions that have nothing", n)
	}
}

// A session has one connection, and one more for each claim that waits or has waited; above the cap it is said.
func TestConnectionsOfASession(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	a, b := user(t, bySession(s)), user(t, bySession(s, "max_waiting=3"))
	var all []driver.Claim
	for i := range 50 {
		mine := mutex(fmt.Sprint("many/", i))
		asks(t, a, mine, true)
		all = append(all, mine)
	}
	if n := backends(t, s, ""); n != 2 {
		t.Errorf("%d connections for two sessions and fifty locks, want 2", n)
	}
	var waits []driver.Claim
	for i := range 3 {
		next := mutex(fmt.Sprint("many/", i))
		asks(t, b, next, false)
		waits = append(waits, next)
	}
	one := mutex("many/3")
	if _, err := b.Acquire(t.Context(), one); !errors.Is(err, driver.ErrUnable) || !errors.Is(err, driver.ErrNotSent) || !strings.Contains(err.Error(), "raise MaxWaiting") {
		t.Errorf("a fourth claim that waits: %v", err)
	}
	leaves(t, b, one, false)
	if n := backends(t, s, ""); n != 5 {
		t.Errorf("%d connections while three claims wait, want 5", n)
	}
	for i, next := range waits {
		leaves(t, a, all[i], true)
		awaits(t, b, next)
		leaves(t, b, next, true)
	}
	until(t, "connections that have nothing are closed but for two", func() bool { return backends(t, s, "") <= 4 })
	for _, mine := range all[3:] {
		leaves(t, a, mine, true)
	}
}

// What an administrator may set does not break locks that live with connections.
func TestSettingsOfSession(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for _, setting := range []string{
		"default_transaction_isolation = 'serializable'", "statement_timeout = '50ms'", "lock_timeout = '50ms'", "synchronous_commit = 'off'",
		"idle_session_timeout = '50ms'", "idle_in_transaction_session_timeout = '50ms'", "default_transaction_read_only = on",
		"standard_conforming_strings = off", "bytea_output = 'escape'", "DateStyle = 'German'", "extra_float_digits = 0",
	} {
		execute(t, s, "alter role postgres set "+setting)
		a, b := user(t, bySession(s)), user(t, bySession(s))
		mine, next := mutex("settings"), mutex("settings")
		asks(t, a, mine, true)
		asks(t, b, next, false)
		time.Sleep(100 * time.Millisecond) // longer than what was set
		leaves(t, a, mine, true)
		if g := awaits(t, b, next); g.Fence == 0 {
			t.Error("no token")
		}
		leaves(t, b, next, true)
		reset, err := pgx.Connect(t.Context(), s.URL())
		if err != nil {
			t.Fatal(err)
		}
		for _, sql := range []string{"set default_transaction_read_only = off", "alter role postgres reset " + strings.Fields(setting)[0]} {
			if _, err := reset.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		_ = reset.Close(t.Context())
	}
}

// Without tables there are locks and no tokens, and that is said. A standby, or a role that may not draw, is refused.
func TestSessionWithoutTables(t *testing.T) {
	t.Parallel()
	s := servertest.Postgres(t)
	d, err := driver.OpenURL(t.Context(), bySession(s))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(t.Context())
	if f := d.Traits().Fence; f != driver.NoFence {
		t.Errorf("tokens are %s without a sequence", f)
	}
	a, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	mine := mutex("bare")
	if g := asks(t, a, mine, true); g.Fence != 0 {
		t.Errorf("token %d", g.Fence)
	}
	leaves(t, a, mine, true)

	m := migrated(t)
	execute(t, m, "create role nobody login; grant usage on schema interlock to nobody")
	if _, err := enter(t, strings.Replace(bySession(m), "postgres@", "nobody@", 1), time.Minute); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "the role needs") {
		t.Errorf("a role that may not draw tokens: %v", err)
	}
	execute(t, m, "grant select, usage, update on interlock.token to nobody")
	cycle(t, strings.Replace(bySession(m), "postgres@", "nobody@", 1))
	for _, bad := range []string{"technique=no", "keys=no", "max_waiting=0", "max_waiting=x"} {
		if _, err := driver.OpenURL(t.Context(), s.URL()+"&"+bad); err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// People see who has a name and who waits, and can end a backend that has nothing else.
func TestLookIntoSession(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	viewer, err := driver.OpenURL(t.Context(), bySession(s))
	if err != nil {
		t.Fatal(err)
	}
	defer viewer.Close(t.Context())
	look := viewer.(driver.Inspector)
	open := func(name string) driver.Session {
		d, err := driver.OpenURL(t.Context(), bySession(s))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close(context.Background()) })
		session, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute, Owner: driver.Owner{Name: name}})
		if err != nil {
			t.Fatal(err)
		}
		return session
	}
	line := func(want int) []driver.Holder {
		t.Helper()
		l, err := look.Line(t.Context(), "looked at")
		if err != nil || len(l.Claims) != want {
			t.Fatalf("%d claims, %v; want %d", len(l.Claims), err, want)
		}
		return l.Claims
	}
	line(0)
	a, b, c := open("a"), open("b"), open("c")
	mine, next, third, other := mutex("looked at"), mutex("looked at"), mutex("looked at"), mutex("other")
	asks(t, a, mine, true)
	asks(t, b, next, false)
	third.Kind, third.Weight = driver.Read, 1
	asks(t, c, third, false)
	all := line(3)
	for i, name := range []string{"a", "b", "c"} {
		if h := all[i]; h.Owner.Name != name || h.Held != (i == 0) || h.Foreign || (h.Kind == driver.Read) != (i == 2) || h.Owner.User != "postgres" || h.Since.IsZero() != (i == 0) {
			t.Errorf("claim %d is shown as %+v", i, h)
		}
	}
	if _, err := look.Lines(t.Context(), ""); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Lines: %v", err)
	}
	refused := func(id string, fence uint64, now bool, says string) {
		t.Helper()
		if err := look.Break(t.Context(), "looked at", id, fence, now); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), says) {
			t.Errorf("Break: %v; want: %s", err, says)
		}
	}
	refused(driver.PublicID("nobody"), 0, true, "no claim")
	refused(all[0].PublicID, 32, true, "no claim")
	refused(all[0].PublicID, 0, false, "can only be broken now")
	asks(t, a, other, true)
	refused(all[0].PublicID, 0, true, "has 1 other locks")
	leaves(t, a, other, true)
	for i, of := range []struct {
		driver.Session
		driver.Claim
	}{1: {b, next}, 0: {a, mine}} { // who holds, then who waits
		if err := look.Break(t.Context(), "looked at", all[i].PublicID, 0, true); err != nil {
			t.Fatal(err)
		}
		if id := <-of.Session.(driver.LossNotifier).Lost(); id != of.ID {
			t.Error("another claim is told to be lost")
		}
		if i == 0 {
			awaits(t, b, next)
		}
	}
	awaits(t, c, third)
	line(1)
	byHand(t, s)("select pg_advisory_lock_shared(" + viewer.(driver.Keyer).Key("looked at") + ") is not null")
	foreign := 0
	for _, h := range line(2) {
		if h.Foreign {
			foreign++
		}
	}
	if foreign != 1 {
		t.Errorf("%d foreign claims, want 1", foreign)
	}
}

// Tokens grow over a crash of the server, and when the database's sequence has lost what it gave.
func TestS16S17_TokensOfSessionsGrow(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	last := uint64(0)
	for i := range 4 {
		a, mine := user(t, bySession(s)), mutex("tokens")
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
		case 2:
			execute(t, s, fmt.Sprintf("select setval('interlock.token', %d)", last))
		}
		_, _ = a.Release(t.Context(), mine) // a crash has taken it
	}
}

// A backend is given again what it has: this does not show, neither to a claim of the same session nor to who waits for both.
func TestSessionIsNotReentrant(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	a, b := user(t, bySession(s)), user(t, bySession(s))
	reads := func() driver.Claim {
		c := tries("again")
		c.Kind, c.Weight = driver.Read, 1
		return c
	}
	one, writes := reads(), mutex("again")
	asks(t, a, one, true)
	asks(t, b, writes, false)
	if g, err := a.Acquire(t.Context(), reads()); err != nil || g.Held {
		t.Errorf("a second reader of the session, past a writer that waits: held %v, %v", g.Held, err)
	}
	leaves(t, a, one, true)
	awaits(t, b, writes)
	if g, err := b.Acquire(t.Context(), tries("again")); err != nil || g.Held {
		t.Errorf("a second mutex of the session: held %v, %v", g.Held, err)
	}
	leaves(t, b, writes, true)
}

// Whoever does not renew loses the lock when the time is over, although the connection stands: so it is where nobody can tell the server
// that the holder is gone.
func TestS04_ASessionIsNotRenewed(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	a, err := enter(t, bySession(s), 500*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	b, mine, next := user(t, bySession(s)), mutex("idle"), mutex("idle")
	if _, err := a.Acquire(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Acquire(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	awaits(t, b, next)
	if r, err := a.Renew(t.Context()); err != nil || len(r.Lost) != 1 {
		t.Errorf("Renew: %+v, %v; want one claim lost", r, err)
	}
}

// A renewal that gets no answer in its time closes no connection: when the network is back the lock is there.
func TestS07_ARenewalIsLeftRunning(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	w, err := wire.Listen(t.Context(), s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	a, b := user(t, strings.Replace(bySession(s), s.Addr(), w.Addr(), 1)), user(t, bySession(s))
	mine := mutex("renewed")
	g := asks(t, a, mine, true)
	for _, way := range []wire.Direction{wire.Replies, wire.Both} {
		heal := w.Stall(way)
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			if _, err := a.Renew(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Renew without an answer: %v", err)
			}
			cancel()
		}
		heal()
		if r, err := a.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
			t.Fatalf("Renew when the network is back: %+v, %v; the lock went with a renewal that was given up", r, err)
		}
	}
	if again := asks(t, a, mine, true); again.Fence != g.Fence {
		t.Errorf("token %d, and before %d", again.Fence, g.Fence)
	}
	if other, err := b.Acquire(t.Context(), tries("renewed")); err != nil || other.Held {
		t.Errorf("another one: held %v, %v", other.Held, err)
	}
	leaves(t, a, mine, true)
}
