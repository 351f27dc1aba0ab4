package main

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// Every request is counted, and no optional method of the session is hidden.
func TestMetered(t *testing.T) {
	ctx := t.Context()
	m := &metered{Driver: memlock.New()}
	plain, err := memlock.New().Open(ctx, driver.Spec{ID: driver.NewID(), TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Open(ctx, driver.Spec{ID: driver.NewID(), TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	_, plainRequeues := plain.(driver.Requeuer)
	requeuer, requeues := s.(driver.Requeuer)
	if plainRequeues != requeues {
		t.Errorf("requeues %v, but the session under it %v", requeues, plainRequeues)
	}

	c := driver.Claim{Name: "x", ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Queue: true}
	if _, err := s.Acquire(ctx, c); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Wait(ctx, c); err != nil {
		t.Fatal(err)
	}
	want := int64(3)
	if requeues {
		want++
		next := c
		next.ID = driver.NewID()
		if _, _, err := requeuer.Requeue(ctx, c, next); err != nil {
			t.Fatal(err)
		}
		c = next
	}
	if held, err := s.Release(ctx, c); err != nil || !held {
		t.Fatal(held, err)
	}
	if _, err := s.Renew(ctx); err != nil {
		t.Fatal(err)
	}
	if got := m.operations.Load(); got != want {
		t.Errorf("%d operations, want %d", got, want)
	}
	if got := m.renewals.Load(); got != 1 {
		t.Errorf("%d renewals, want 1", got)
	}
}
