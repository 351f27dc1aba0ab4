package redistest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
)

// TryFullMemory is TryFullMemories on one server.
func TryFullMemory(t *testing.T, open Opening) {
	t.Helper()
	s := servertest.Redis(t)
	TryFullMemories(t, []*servertest.Server{s}, func() driver.Driver { return open(t, s.Addr()) })
}

// TryFullMemories tries what goes on when the servers' memory is full: what is held is renewed, waiters keep their places, a
// release frees and hands over, and only who is new is denied. Each open makes a driver.
func TryFullMemories(t *testing.T, servers []*servertest.Server, open func() driver.Driver) {
	t.Helper()
	ctx, shares := t.Context(), false
	session := func() driver.Session {
		d := open()
		shares = d.Traits().Shared
		s, err := d.Open(ctx, driver.Spec{ID: driver.NewID(), TTL: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close(context.WithoutCancel(ctx)) })
		return s
	}
	must := func(what string, s driver.Session, c driver.Claim, held bool) {
		t.Helper()
		if g, err := s.Acquire(ctx, c); err != nil || g.Held != held {
			t.Fatalf("%s: held %v, %v; want held %v", what, g.Held, err, held)
		}
	}
	holds, waits := session(), session()
	kinds := []driver.Kind{driver.Mutex}
	if shares {
		kinds = append(kinds, driver.Write, driver.Read)
	}
	claim := func(k driver.Kind, name string, queue bool) driver.Claim {
		c := exclusive(name, queue)
		if c.Kind = k; k == driver.Read {
			c.Weight = 1
		}
		return c
	}
	held, behind := map[driver.Kind]driver.Claim{}, map[driver.Kind]driver.Claim{}
	for _, k := range kinds {
		name := "full " + k.String()
		held[k], behind[k] = claim(k, name, true), claim(driver.Mutex, name, true)
		if k != driver.Mutex {
			behind[k] = claim(driver.Write, name, true)
		}
		must("a free name", holds, held[k], true)
		must("behind "+k.String(), waits, behind[k], false)
	}

	for _, s := range servers {
		s.MustDo(t, "CONFIG", "SET", "maxmemory", "1")
	}
	for what, s := range map[string]driver.Session{"holds": holds, "waits": waits} {
		if r, err := s.Renew(ctx); err != nil || len(r.Lost) > 0 {
			t.Fatalf("who %s is not renewed while the memory is full: lost %v, %v", what, r.Lost, err)
		}
	}
	newcomer := session()
	for _, k := range kinds {
		if g, err := newcomer.Acquire(ctx, claim(k, "new "+k.String(), true)); err == nil || g.Held {
			t.Errorf("a new %s is let in, %v, although the memory is full", k, g.Held)
		}
		if g, err := waits.Acquire(ctx, behind[k]); err != nil || g.Held {
			t.Errorf("who waits behind a %s asks again: held %v, %v; want it to wait", k, g.Held, err)
		}
	}
	for _, k := range kinds {
		if was, err := holds.Release(ctx, held[k]); err != nil || !was {
			t.Errorf("the release of a %s while the memory is full: held %v, %v", k, was, err)
		}
		waiting, cancel := context.WithTimeout(ctx, limit)
		g, err := waits.Wait(waiting, behind[k])
		for err == nil && !g.Held {
			g, err = waits.Wait(waiting, behind[k])
		}
		cancel()
		if err != nil {
			t.Errorf("who waits behind a %s is not let in: %v", k, err)
		}
		if _, err := waits.Release(ctx, behind[k]); err != nil {
			t.Errorf("the release of who waited behind a %s: %v", k, err)
		}
	}
	for _, s := range servers {
		s.MustDo(t, "CONFIG", "SET", "maxmemory", "0")
	}
	if _, err := newcomer.Acquire(ctx, claim(driver.Mutex, "new", false)); err != nil && !errors.Is(err, driver.ErrNotSent) {
		t.Errorf("a new claim when there is memory again: %v", err)
	}
}
