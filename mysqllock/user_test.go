package mysqllock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
)

// execute makes statements of the superuser.
func execute(t *testing.T, s *servertest.Server, statements ...string) {
	t.Helper()
	db := pool(t, s.URL())
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// ask returns the only value of a query of the superuser.
func ask[V any](t *testing.T, s *servertest.Server, query string) (v V) {
	t.Helper()
	if err := pool(t, s.URL()).QueryRowContext(t.Context(), query).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

// user opens a session at a URL, by a driver of its own.
func user(t *testing.T, url string) driver.Session {
	t.Helper()
	s, err := enter(t, url, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func enter(t *testing.T, url string, ttl time.Duration) (driver.Session, error) {
	t.Helper()
	d, err := driver.OpenURL(t.Context(), url)
	if err != nil {
		return nil, err
	}
	return session(t, d, ttl)
}

func session(t *testing.T, d driver.Driver, ttl time.Duration) (driver.Session, error) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = d.Close(ctx)
	})
	return d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: ttl})
}

func mutex(name string) driver.Claim {
	return driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Queue: true}
}

// tries is a claim that does not queue.
func tries(name string) driver.Claim {
	c := mutex(name)
	c.Queue = false
	return c
}

// asks is Acquire, which must answer held or not as wanted.
func asks(t *testing.T, s driver.Session, c driver.Claim, held bool) driver.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), c)
	if err != nil || g.Held != held {
		t.Fatalf("Acquire: held %v, %v; want %v and no error", g.Held, err, held)
	}
	return g
}

// awaits waits until a claim is held.
func awaits(t *testing.T, s driver.Session, c driver.Claim) driver.Grant {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		g, err := s.Wait(ctx, c)
		if err == nil && g.Held {
			return g
		}
		if ctx.Err() != nil || err != nil && !errors.Is(err, driver.ErrNotSent) {
			t.Fatalf("Wait: held %v, %v; want it held", g.Held, err)
		}
	}
}

func leaves(t *testing.T, s driver.Session, c driver.Claim, held bool) {
	t.Helper()
	if was, err := s.Release(t.Context(), c); err != nil || was != held {
		t.Fatalf("Release: was held %v, %v; want %v and no error", was, err, held)
	}
}

// cycle is everything that users of locks do.
func cycle(t *testing.T, a, b driver.Session) {
	t.Helper()
	mine, next, third := mutex("cycle"), mutex("cycle"), mutex("cycle")
	asks(t, a, mine, true)
	asks(t, b, next, false)
	for _, s := range []driver.Session{a, b} {
		if r, err := s.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
			t.Fatalf("Renew: %+v, %v", r, err)
		}
	}
	if g, held, err := a.(driver.Requeuer).Requeue(t.Context(), mine, third); err != nil || !held || g.Held {
		t.Fatalf("Requeue: %+v, %v, %v", g, held, err)
	}
	awaits(t, b, next)
	leaves(t, b, next, true)
	awaits(t, a, third)
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	last := mutex("cycle")
	asks(t, b, last, true)
	leaves(t, b, last, true)
}
