package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// patience is as long as a slow machine may need for a step.
const patience = 30 * time.Second

// within bounds a step.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// User opens a session at a URL, by a driver of its own.
func User(t *testing.T, url string) driver.Session {
	t.Helper()
	s, err := Enter(t, url, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Enter is [User] where that may fail.
func Enter(t *testing.T, url string, ttl time.Duration) (driver.Session, error) {
	t.Helper()
	d, err := driver.OpenURL(t.Context(), url)
	if err != nil {
		return nil, err
	}
	return Session(t, d, ttl)
}

// Session opens a session of a driver, which is closed at the end of the test.
func Session(t *testing.T, d driver.Driver, ttl time.Duration) (driver.Session, error) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = d.Close(ctx)
	})
	return d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: ttl})
}

// Mutex is a claim for a whole name that queues.
func Mutex(name string) driver.Claim {
	return driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Queue: true}
}

// Tries is a [Mutex] that does not queue.
func Tries(name string) driver.Claim {
	c := Mutex(name)
	c.Queue = false
	return c
}

// Asks is Acquire, which must answer held or not as wanted.
func Asks(t *testing.T, s driver.Session, c driver.Claim, held bool) driver.Grant {
	t.Helper()
	g, err := s.Acquire(within(t), c)
	if err != nil || g.Held != held {
		t.Fatalf("Acquire: held %v, %v; want %v and no error", g.Held, err, held)
	}
	return g
}

// Awaits waits until a claim is held.
func Awaits(t *testing.T, s driver.Session, c driver.Claim) driver.Grant {
	t.Helper()
	for ctx := within(t); ; {
		g, err := s.Wait(ctx, c)
		if err == nil && g.Held {
			return g
		}
		if ctx.Err() != nil || err != nil && !errors.Is(err, driver.ErrNotSent) {
			t.Fatalf("Wait: held %v, %v; want it held", g.Held, err)
		}
	}
}

// Leaves is Release, which must answer as wanted whether the claim was held.
func Leaves(t *testing.T, s driver.Session, c driver.Claim, held bool) {
	t.Helper()
	if was, err := s.Release(within(t), c); err != nil || was != held {
		t.Fatalf("Release: was held %v, %v; want %v and no error", was, err, held)
	}
}

// Told awaits that a claim is told to be lost, by itself.
func Told(t *testing.T, s driver.Session, c driver.Claim) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case l := <-s.(driver.LossNotifier).Lost():
		if l.ID != c.ID {
			t.Error("another claim is told to be lost")
		}
	case <-limit.C:
		t.Fatalf("a claim is lost, and its owner not told within %v", patience)
	}
}

// Cycle is everything that users of locks do. It closes a.
func Cycle(t *testing.T, a, b driver.Session) {
	t.Helper()
	mine, next, third := Mutex("cycle"), Mutex("cycle"), Mutex("cycle")
	Asks(t, a, mine, true)
	Asks(t, b, next, false)
	for _, s := range []driver.Session{a, b} {
		if r, err := s.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
			t.Fatalf("Renew: %+v, %v", r, err)
		}
	}
	if r, ok := a.(driver.Requeuer); !ok {
		Leaves(t, a, mine, true)
		Awaits(t, b, next) // without an order another one could come first
		Asks(t, a, third, false)
	} else if g, held, err := r.Requeue(t.Context(), mine, third); err != nil || !held || g.Held {
		t.Fatalf("Requeue: %+v, %v, %v", g, held, err)
	}
	Awaits(t, b, next)
	Leaves(t, b, next, true)
	Awaits(t, a, third)
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	last := Mutex("cycle")
	Asks(t, b, last, true)
	Leaves(t, b, last, true)
}

// Until looks again and again until it sees what is awaited.
func Until(t *testing.T, what string, look func() bool) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(patience); !look(); <-again.C {
		if time.Now().After(end) {
			t.Fatalf("still not: %s", what)
		}
	}
}
