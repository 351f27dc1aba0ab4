package pglock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
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

// A session has one connection, and one more for each claim that waits or has waited; above the cap
// it is said.
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
	withConnections(t, settled)
}

func settled(t *testing.T, technique string) {
	t.Helper()
	s := migrated(t)
	for _, setting := range []string{
		"default_transaction_isolation = 'serializable'", "statement_timeout = '500ms'", "lock_timeout = '500ms'", "synchronous_commit = 'off'",
		"idle_session_timeout = '500ms'", "idle_in_transaction_session_timeout = '500ms'", "default_transaction_read_only = on", "search_path = ''",
		"standard_conforming_strings = off", "bytea_output = 'escape'", "DateStyle = 'German'", "extra_float_digits = 0",
	} {
		execute(t, s, "alter role postgres set "+setting)
		a, b := user(t, by(s.URL(), technique)), user(t, by(s.URL(), technique))
		mine, next := mutex("settings"), mutex("settings")
		asks(t, a, mine, true)
		asks(t, b, next, false)
		if strings.Contains(setting, "timeout") {
			time.Sleep(600 * time.Millisecond) // longer than what was set
		}
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

// Without tables there are locks and no tokens, and that is said. A standby, or a role that may not
// draw, is refused.
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
	execute(t, m, "grant select on interlock.version to nobody; grant select, usage, update on interlock.token to nobody")
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
	refused := func(id string, fence uint64, now bool, says string, as error) {
		t.Helper()
		if err := look.Break(t.Context(), "looked at", id, fence, now); !errors.Is(err, as) || !strings.Contains(err.Error(), says) {
			t.Errorf("Break: %v; want: %s", err, says)
		}
	}
	refused(driver.PublicID("nobody"), 0, true, "no claim", driver.ErrRefused)
	refused(all[0].PublicID, 32, true, "no claim", driver.ErrRefused)
	refused(all[0].PublicID, 0, false, "cannot be marked", driver.ErrOnlyNow)
	asks(t, a, other, true)
	refused(all[0].PublicID, 0, true, "has 1 other locks", errors.ErrUnsupported)
	leaves(t, a, other, true)
	for i, of := range []struct {
		driver.Session
		driver.Claim
	}{1: {b, next}, 0: {a, mine}} { // who holds, then who waits
		if err := look.Break(t.Context(), "looked at", all[i].PublicID, 0, true); err != nil {
			t.Fatal(err)
		}
		if l := <-of.Session.(driver.LossNotifier).Lost(); l.ID != of.ID {
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

// A backend is given again what it has: this does not show, neither to a claim of the same session
// nor to who waits for both.
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
