package pglock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/storetest"
)

func TestS09_ClocksOfClientsDoNotCount(t *testing.T) {
	t.Parallel()
	storetest.ClockIsOff(t, clocked(t))
}

// A request that had to wait for a row is late by the clock of now, not by that of when it began:
// it takes nothing, and hands nothing over.
func TestS10_TheClockGoesOnInATransaction(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	p := pool(t, s.URL())
	user(t, s.URL())
	const turn = "interlock.turn('late', s.id, %s, '%s', false, true, 1, 2147483647, 2147483647, 0, '', interlock.us() + %d, 20000)"
	const line = "select string_agg((c.id || ' ' || c.held)::text, ', ') from interlock.lock l, unnest(l.line) c where l.name = 'late'"
	late := func(old, id string) (answer string, err error) {
		tx, err := p.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(context.Background()) }()
		if _, err := tx.Exec(t.Context(), "select from interlock.lock where name = 'late' for update"); err != nil {
			t.Fatal(err)
		}
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			err = p.QueryRow(t.Context(), "select "+fmt.Sprintf(turn, old, id, 300000)+" from interlock.session s").Scan(&answer)
		}()
		until(t, "the request waits for the row", func() bool {
			return ask[int](t, s, "select count(*) from pg_stat_activity where wait_event_type = 'Lock'") == 1
		})
		began := ask[int64](t, s, "select interlock.us()")
		until(t, "its time is over", func() bool { return ask[int64](t, s, "select interlock.us()") > began+400000 })
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-answered
		return answer, err
	}
	execute(t, s, "insert into interlock.lock values ('late', 0, '{}')")
	if answer, err := late("null", "x"); err != nil || answer[0] != '7' {
		t.Errorf("a request that came too late answered state %.1s, %v, want 7: it is void", answer, err)
	}
	for _, id := range []string{"a", "b"} {
		execute(t, s, "select "+fmt.Sprintf(turn, "null", id, 60000000)+" from interlock.session s")
	}
	answer, err := late("'a'", "x")
	if stands := ask[string](t, s, line); err == nil || stands != "a true, b false" {
		t.Errorf("to hand over too late answered %q, %v, and there stand %s; want an error, and those who stood there", answer, err, stands)
	}
}

// A renewal that had to wait counts from when it is written.
func TestS11_TheTimeIsReadWhereItIsWritten(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	a := user(t, s.URL())
	p := pool(t, s.URL())
	tx, err := p.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), "update interlock.session set broken = broken"); err != nil {
		t.Fatal(err)
	}
	renewed := make(chan error, 1)
	go func() { _, err := a.Renew(t.Context()); renewed <- err }()
	until(t, "the renewal waits for the row", func() bool {
		return ask[int](t, s, "select count(*) from pg_stat_activity where wait_event_type = 'Lock'") == 1
	})
	var now, ends, ttl int64
	if err := tx.QueryRow(t.Context(), "select interlock.us()").Scan(&now); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-renewed; err != nil {
		t.Fatal(err)
	}
	if err := p.QueryRow(t.Context(), "select until, ttl from interlock.session").Scan(&ends, &ttl); err != nil {
		t.Fatal(err)
	}
	if ends < now+ttl {
		t.Errorf("renewed until %d µs before its time, counted from when it was written", now+ttl-ends)
	}
}

// A claim that waits looks by itself when the time of who is in its way is over. That renews
// nothing: what else its session has goes when nobody renews it.
func TestWaitRenewsNothing(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	a, b := user(t, s.URL()), user(t, s.URL())
	mine, next := mutex("looked at"), mutex("looked at")
	asks(t, a, mine, true)
	asks(t, b, next, false)
	execute(t, s, fmt.Sprintf("update interlock.session s set until = case when c.id = '%s' then 0 else interlock.us() + ttl / 2 end "+
		"from interlock.lock l, unnest(l.line) c where s.id = c.session", mine.ID))
	const until = "select until from interlock.session where until > 0"
	before := ask[int64](t, s, until)
	awaits(t, b, next)
	if after := ask[int64](t, s, until); after != before {
		t.Errorf("the session was renewed by a claim that only waited, for %d µs more", after-before)
	}
}

// Sixteen clients want names that nobody has used, all at once, in sessions that are to be renewed
// on the way.
func TestS12_NewNamesAtOnce(t *testing.T) {
	t.Parallel()
	s := migrated(t, "-c", "max_connections=200")
	for technique, rounds := range map[string]int{"rows": 25, "rowlock": 8} {
		var sessions []driver.Session
		for range 16 {
			sessions = append(sessions, user(t, by(s.URL(), technique)+"&pool_max_conns=2"))
		}
		for round := range rounds {
			execute(t, s, "update interlock.session set until = interlock.us() + ttl / 2")
			var all sync.WaitGroup
			for _, session := range sessions {
				all.Go(func() {
					for i := range 2 {
						c := mutex(fmt.Sprintf("new/%d/%d", round, i))
						g, err := session.Acquire(t.Context(), c)
						if err == nil && !g.Held {
							awaits(t, session, c)
						}
						if err != nil {
							t.Errorf("a new name: %v", err)
							return
						}
						leaves(t, session, c, true)
					}
				})
			}
			all.Wait()
			if t.Failed() {
				return
			}
		}
	}
}

// A transaction of the program's that has not ended makes the row of a name. Who waits for the lock
// has it when the transaction ends, whether the row is there then or not.
func TestS12_ANameInTheMaking(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	begin, b := clients["pgx"](t, s.URL()), user(t, by(s.URL(), "rowlock"))
	for name, end := range map[string]func(transaction) error{
		"committed": func(tx transaction) error { return tx.commit() },
		"undone":    func(tx transaction) error { tx.undo(); return nil },
	} {
		tx, err := begin("read committed")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.lock(name, nil); err != nil {
			t.Fatal(err)
		}
		next := mutex(name)
		asks(t, b, next, false)
		if err := end(tx); err != nil {
			t.Fatal(err)
		}
		awaits(t, b, next)
		leaves(t, b, next, true)
	}
}

// Tokens grow while backends are terminated in the middle of grants, over a restart, and when the
// database's clock has been set back.
func TestS16S17_TokensGrow(t *testing.T) {
	t.Parallel()
	s := clocked(t)
	a, b := user(t, s.URL()), user(t, s.URL())
	var last uint64
	turns := func(when string) {
		t.Helper()
		for range 40 {
			for _, session := range []driver.Session{a, b} {
				c := mutex("tokens")
				g, err := session.Acquire(t.Context(), c)
				if err == nil && g.Held && g.Fence < last+driver.Stride {
					t.Fatalf("token %d after %d, %s", g.Fence, last, when)
				}
				last = max(last, g.Fence)
				until(t, "released", func() bool { _, err := session.Release(t.Context(), c); return err == nil })
			}
		}
	}
	turns("at first")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 20 {
			execute(t, s, "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'interlock'")
		}
	}()
	turns("while backends are terminated")
	<-done
	if err := errors.Join(s.Kill(), s.Step(-time.Hour), s.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
	a, b = user(t, s.URL()), user(t, s.URL())
	turns("after the database's clock was set back")
}

// Two clients whose sessions have other time zones see the same times, whatever the technique.
func TestS23_TimeZones(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	execute(t, s, "alter database postgres set timezone = 'America/Caracas'")
	var a driver.Session
	for _, technique := range []string{"rowlock", "session", "rows"} {
		a = user(t, by(s.URL(), technique)+"&timezone=Asia/Kathmandu")
		b := user(t, by(s.URL(), technique)+"&timezone=America/New_York")
		mine, next := mutex("zones"), mutex("zones")
		first := asks(t, a, mine, true).Fence
		asks(t, b, next, false)
		leaves(t, a, mine, true)
		if g := awaits(t, b, next); g.Fence < first+driver.Stride {
			t.Errorf("%s: token %d after %d", technique, g.Fence, first)
		}
		leaves(t, b, next, true)
	}
	d, err := driver.OpenURL(t.Context(), s.URL()+"&timezone=Pacific/Chatham")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(t.Context())
	asks(t, a, mutex("zones"), true)
	l, err := d.(driver.Inspector).Line(t.Context(), "zones")
	if err != nil || len(l.Claims) != 1 || time.Since(l.Claims[0].Since).Abs() > time.Minute {
		t.Errorf("%+v, %v: want one claim, since now", l.Claims, err)
	}
}
