package pglock_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/pglock"
)

// side runs n jobs, some at a time.
func side(n int, job func(i int)) {
	var all sync.WaitGroup
	next := make(chan int)
	for range 8 {
		all.Go(func() {
			for i := range next {
				job(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}

// Ten thousand leases are renewed by one statement, which finds the two that an operator broke.
func TestTenThousandLeases(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes ten thousand locks")
	}
	const n = 10_000
	h := newHarness(migrated(t))
	d := h.Driver(t)
	s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	claims, grants := make([]driver.Claim, n), make([]driver.Grant, n)
	side(n, func(i int) {
		claims[i] = mutex(fmt.Sprintf("leases/%d", i))
		g, err := s.Acquire(t.Context(), claims[i])
		if grants[i] = g; err != nil || !g.Held {
			t.Errorf("lease %d: held %v, %v", i, g.Held, err)
		}
	})
	if t.Failed() {
		return
	}
	renew := func(lost ...string) {
		t.Helper()
		before := h.Calls(d)
		r, err := s.Renew(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(r.Lost)
		slices.Sort(lost)
		if !slices.Equal(r.Lost, lost) || h.Calls(d) != before+1 {
			t.Errorf("%d of %d leases are lost, want %d; by %d statements, want 1", len(r.Lost), n, len(lost), h.Calls(d)-before)
		}
	}
	renew()
	for i, now := range []bool{true, false} {
		if err := d.(driver.Inspector).Break(t.Context(), claims[i].Name, driver.PublicID(claims[i].ID), grants[i].Fence, now); err != nil {
			t.Fatal(err)
		}
	}
	renew(claims[0].ID, claims[1].ID)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := ask[int](t, h.server, "select count(*) from interlock.lock where cardinality(line) > 0"); n != 0 {
		t.Errorf("%d names are locked when the session has closed", n)
	}
}

// A thousand claims wait for one name, each of a session of its own or all of one: every one is renewed, and they are let in in order.
func TestAThousandWaiters(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it makes a thousand sessions")
	}
	s := migrated(t)
	d, err := pglock.New(t.Context(), pool(t, s.URL()+"&pool_max_conns=8"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := d.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	for what, own := range map[string]bool{"sessions": true, "one session": false} {
		const n = 1000
		open := func() driver.Session {
			session, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			return session
		}
		first, mine := open(), mutex("waiters/"+what)
		asks(t, first, mine, true)
		all, claims := make([]driver.Session, n), make([]driver.Claim, n)
		shared := open()
		for i := range n {
			all[i], claims[i] = shared, mutex(mine.Name)
			if own {
				all[i] = open()
			}
			asks(t, all[i], claims[i], false)
		}
		renewed := all
		if !own {
			renewed = []driver.Session{shared}
		}
		side(len(renewed), func(i int) {
			if r, err := renewed[i].Renew(t.Context()); err != nil || len(r.Lost) > 0 {
				t.Errorf("%s: renewed: %d lost, %v", what, len(r.Lost), err)
			}
		})
		leaves(t, first, mine, true)
		for i := range 20 {
			awaits(t, all[i], claims[i])
			leaves(t, all[i], claims[i], true)
		}
	}
}
