package main

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/interlock-go/interlock/internal/servertest"
)

// What a backend has used is counted while it lives, and not lost when it
// ends.
func TestFamilyTime(t *testing.T) {
	ctx := t.Context()
	s := &site{postgres: servertest.Postgres(t)}
	look := func() float64 {
		t.Helper()
		did, err := s.look()
		if err != nil {
			t.Fatal(err)
		}
		return did.cpu
	}
	conn, err := pgx.Connect(ctx, s.postgres.URL())
	if err != nil {
		t.Fatal(err)
	}
	before := look()
	if _, err := conn.Exec(ctx, "select count(*) from generate_series(1, 500000)"); err != nil {
		t.Fatal(err)
	}
	alive := look()
	if alive <= before {
		t.Errorf("half a million rows cost %v s", alive-before)
	}
	if err := conn.Close(ctx); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		n, err := s.clients(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the backend does not end")
		}
	}
	const coarse = 0.02 // the kernel tells what ended children used in ticks
	if ended := look(); ended < alive-coarse {
		t.Errorf("%v s while the backend lived and %v s after its end", alive, ended)
	}
}

// A free lock is taken by one request and released by one, by everything
// that does not look first whether its table is there.
func TestRequestsOfAFreePair(t *testing.T) {
	ctx := t.Context()
	server := servertest.Postgres(t)
	for _, name := range []string{"raw rows", "raw rows, unprepared", "advisory", "table", "pg rows", "pg session"} {
		l, err := adapters[name].open(ctx, place{Postgres: server.URL(), Process: 1, Processes: 1, TTL: time.Hour})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		m := l.mutex("x")
		var sent int64
		for range 3 { // the first ones connect and prepare
			before := requestsOf(l)
			unlock, err := m.lock(ctx)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := unlock(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			sent = requestsOf(l) - before
		}
		if sent != 2 {
			t.Errorf("%s: %d requests, want 2", name, sent)
		}
		if err := l.close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The end of a lease is that of the contender's own table, and an error where
// nobody has one.
func TestLeaseEnds(t *testing.T) {
	ctx := t.Context()
	s := &site{postgres: servertest.Postgres(t)}
	for _, name := range []string{"table", "goose", "pg rows"} {
		a := adapters[name]
		before := now()
		l, err := a.open(ctx, place{Postgres: s.postgres.URL(), Process: 1, Processes: 1, TTL: time.Hour})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		unlock, err := l.mutex("x").lock(ctx)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		end, err := s.leaseEnd(ctx, a, "x")
		const slack = int64(time.Millisecond) // two clocks are read
		if err != nil || end < before+time.Hour.Nanoseconds()-slack || end > now()+time.Hour.Nanoseconds()+slack {
			t.Errorf("%s: ends in %v, %v; want an hour", name, time.Duration(end-now()), err)
		}
		if _, err := s.leaseEnd(ctx, a, "y"); err == nil {
			t.Errorf("%s: there is an end of a lease that nobody took", name)
		}
		if err := unlock(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := l.close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
