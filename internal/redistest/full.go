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

// TryFullMemories tries what goes on when the servers' memory is full: what is held is renewed,
// waiters keep their places, a release frees and hands over, and only a new claim is denied. Each
// open makes a driver.
func TryFullMemories(t *testing.T, servers []*servertest.Server, open func() driver.Driver) {
	t.Helper()
	f := &full{T: t, open: open, held: map[driver.Kind]driver.Claim{}, behind: map[driver.Kind]driver.Claim{}}
	f.holds, f.waits = f.session(), f.session()
	f.acquire()
	memory := func(limit string) {
		t.Helper()
		for _, s := range servers {
			s.MustDo(t, "CONFIG", "SET", "maxmemory", limit)
		}
	}
	memory("1")
	f.renew()
	newcomer := f.session()
	for _, k := range f.kinds() {
		if g, err := newcomer.Acquire(t.Context(), claim(k, "new "+k.String(), true)); err == nil || g.Held {
			t.Errorf("a new %s is let in, %v, although the memory is full", k, g.Held)
		}
		if g, err := f.waits.Acquire(t.Context(), f.behind[k]); err != nil || g.Held {
			t.Errorf("who waits behind a %s asks again: held %v, %v; want it to wait", k, g.Held, err)
		}
	}
	for _, k := range f.kinds() {
		f.handOver(k)
	}
	memory("0")
	if _, err := newcomer.Acquire(t.Context(), claim(driver.Mutex, "new", false)); err != nil && !errors.Is(err, driver.ErrNotSent) {
		t.Errorf("a new claim when there is memory again: %v", err)
	}
}

// full has, for each kind of claim of a store, one that is held and one that waits behind it.
type full struct {
	*testing.T
	open         func() driver.Driver
	shares       bool // the store has shared locks
	holds, waits driver.Session
	held, behind map[driver.Kind]driver.Claim
}

func (f *full) session() driver.Session {
	d := f.open()
	f.shares = d.Traits().Shared
	s, err := d.Open(f.Context(), driver.Spec{ID: driver.NewID(), TTL: 30 * time.Second})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = d.Close(context.WithoutCancel(f.Context())) })
	return s
}

func (f *full) kinds() []driver.Kind {
	if f.shares {
		return []driver.Kind{driver.Mutex, driver.Write, driver.Read}
	}
	return []driver.Kind{driver.Mutex}
}

func claim(k driver.Kind, name string, queue bool) driver.Claim {
	c := exclusive(name, queue)
	if c.Kind = k; k == driver.Read {
		c.Weight = 1
	}
	return c
}

// acquire makes the claims of each kind, while there is memory.
func (f *full) acquire() {
	f.Helper()
	must := func(what string, s driver.Session, c driver.Claim, held bool) {
		f.Helper()
		if g, err := s.Acquire(f.Context(), c); err != nil || g.Held != held {
			f.Fatalf("%s: held %v, %v; want held %v", what, g.Held, err, held)
		}
	}
	for _, k := range f.kinds() {
		name := "full " + k.String()
		f.held[k], f.behind[k] = claim(k, name, true), claim(driver.Mutex, name, true)
		if k != driver.Mutex {
			f.behind[k] = claim(driver.Write, name, true)
		}
		must("a free name", f.holds, f.held[k], true)
		must("behind "+k.String(), f.waits, f.behind[k], false)
	}
}

// renew renews both sessions while the memory is full: nothing is lost.
func (f *full) renew() {
	f.Helper()
	for what, s := range map[string]driver.Session{"holds": f.holds, "waits": f.waits} {
		if r, err := s.Renew(f.Context()); err != nil || len(r.Lost) > 0 {
			f.Fatalf("who %s is not renewed while the memory is full: lost %v, %v", what, r.Lost, err)
		}
	}
}

// handOver releases the claim of the kind that is held, while the memory is full: the claim behind
// it gets the name.
func (f *full) handOver(k driver.Kind) {
	f.Helper()
	if was, err := f.holds.Release(f.Context(), f.held[k]); err != nil || !was {
		f.Errorf("the release of a %s while the memory is full: held %v, %v", k, was, err)
	}
	ctx, cancel := context.WithTimeout(f.Context(), limit)
	g, err := f.waits.Wait(ctx, f.behind[k])
	for err == nil && !g.Held {
		g, err = f.waits.Wait(ctx, f.behind[k])
	}
	cancel()
	if err != nil {
		f.Errorf("who waits behind a %s is not let in: %v", k, err)
	}
	if _, err := f.waits.Release(f.Context(), f.behind[k]); err != nil {
		f.Errorf("the release of who waited behind a %s: %v", k, err)
	}
}
