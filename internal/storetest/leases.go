package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Side runs n jobs, some at a time.
func Side(n int, job func(i int)) {
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

// TenThousandLeases has them be renewed by one request, which finds the two that an operator broke, at once and marked. Then their session is
// closed. Calls counts the requests of d.
func TenThousandLeases(t *testing.T, d driver.Driver, calls func() int) {
	t.Helper()
	const n = 10_000
	s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	claims, grants := make([]driver.Claim, n), make([]driver.Grant, n)
	Side(n, func(i int) {
		claims[i] = Mutex(fmt.Sprintf("leases/%d", i))
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
		before := calls()
		r, err := s.Renew(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		named := make([]string, len(r.Lost))
		for i, l := range r.Lost {
			named[i] = l.ID
		}
		slices.Sort(named)
		slices.Sort(lost)
		if made := calls() - before; !slices.Equal(named, lost) || made != 1 {
			t.Errorf("%d of %d leases are lost, want %d; by %d requests, want 1", len(r.Lost), n, len(lost), made)
		}
	}
	renew()
	for i, now := range []bool{true, false} {
		if err := d.(driver.Inspector).Break(t.Context(), claims[i].Name, driver.PublicID(claims[i].ID), grants[i].Fence, now); err != nil {
			t.Fatal(err)
		}
	}
	renew(claims[0].ID, claims[1].ID)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}
