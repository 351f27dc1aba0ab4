package pglock_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/storetest"
	"github.com/interlock-go/interlock/pglock"
)

// Ten thousand leases are renewed by one statement, which finds the two that an operator broke.
func TestTenThousandLeases(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes ten thousand locks")
	}
	h := newHarness(migrated(t))
	d := h.Driver(t)
	storetest.TenThousandLeases(t, d, func() int { return h.Calls(d) })
	if n := ask[int](t, h.server, "select count(*) from interlock.lock where cardinality(line) > 0"); n != 0 {
		t.Errorf("%d names are locked when the session has closed", n)
	}
}

// A thousand claims wait for one name, each of a session of its own or all of one: every one is
// renewed, and they are let in in order.
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
		storetest.Side(len(renewed), func(i int) {
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
