package redistest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
)

// TrySilentConnections has the connections over which a session is renewed die unnoticed: at each
// server the one that brings the renewal. The try that meets them, which has so much time, fails.
// One of those that follow at once does not, and nothing is lost. Then the connection that took
// their place dies, and so on. What the client has must not end by itself meanwhile.
func TrySilentConnections(t *testing.T, s driver.Session, patience time.Duration, wires ...*wire.Wire) {
	t.Helper()
	renew := func(d time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		r, err := s.Renew(ctx)
		if len(r.Lost) > 0 {
			t.Fatalf("a renewal lost %d claims for the sake of a dead connection", len(r.Lost))
		}
		return err
	}
	script := func(packet []byte) bool { return bytes.Contains(packet, []byte("EVALSHA")) }
	for range 3 {
		var silenced []<-chan struct{}
		for _, w := range wires {
			silenced = append(silenced, w.Silence(script))
		}
		if err := renew(patience); err == nil {
			t.Fatal("renewed over connections that bring nothing: nothing is tried here")
		}
		for _, s := range silenced {
			Receive(t, 10*time.Second, "a renewal has left", s)
		}
		end := time.Now().Add(s.Valid() / 3)
		for err := renew(2 * patience); err != nil; err = renew(2 * patience) {
			if time.Now().After(end) {
				t.Fatalf("not renewed for a third of its time after one connection died unnoticed: %v; want it over another one", err)
			}
		}
	}
}

// TryReleaseWhileConnecting has the connections of a driver end at a server that takes new ones and
// greets nobody. Many release at once what they hold, over connections that are made for one of
// them, and each is back when its own context ends. What the client has must not end by itself
// meanwhile.
func TryReleaseWhileConnecting(t *testing.T, d driver.Driver, w *wire.Wire) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		_ = d.Close(ctx)
	})
	s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	const crowd = 8
	claims := make([]driver.Claim, crowd)
	for i := range claims {
		claims[i] = exclusive(fmt.Sprint("held ", i), false)
	}
	all := func(do func(c driver.Claim) error) error {
		errs := make(chan error, crowd)
		for _, c := range claims {
			go func() { errs <- do(c) }()
		}
		var failed error
		for range claims {
			failed = errors.Join(failed, Receive(t, limit, "a call is back", errs))
		}
		return failed
	}
	if err := all(func(c driver.Claim) error {
		g, err := s.Acquire(t.Context(), c)
		if err == nil && !g.Held {
			err = errors.New("a free name is not held")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer w.Stall(wire.Both)()
	w.Cut()
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		err := all(func(c driver.Claim) error {
			if _, err := s.Release(ctx, c); err == nil {
				return errors.New("a release was answered by a server that says nothing")
			}
			return nil
		})
		cancel()
		if err != nil {
			t.Error(err)
		}
	}
}
