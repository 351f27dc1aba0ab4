package redistest

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
)

// TrySilentConnections has the connections over which a session is renewed die unnoticed: at each server the one that brings
// the renewal. The try that meets them, which has so much time, fails. One of those that follow at once does not, and nothing is
// lost. Then the connection that took their place dies, and so on. What the client has must not end by itself meanwhile.
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
