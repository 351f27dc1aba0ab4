package redislock_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/wire"
)

// The reply to an Acquire is held. A renewal of the session begins, and both are answered: the claim can be trusted as the
// renewal says, so the server must keep it for that long.
func TestRenewalCoversWhatIsBeingAcquired(t *testing.T) {
	server := servertest.Redis(t)
	w := wire.New(t, server.Addr())
	d, err := driver.OpenURL(t.Context(), "redis://"+w.Addr()+"?timeout=10s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	const ttl = 4 * time.Second
	for _, requeue := range []bool{false, true} {
		name := "covered-" + strconv.FormatBool(requeue)
		claim := func() driver.Claim {
			return driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Queue: true}
		}
		s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		old, next := claim(), claim()
		if g, err := s.Acquire(t.Context(), old); err != nil || !g.Held {
			t.Fatalf("a free name: %+v, %v", g, err)
		}
		if !requeue { // there are connections, and the name is free
			if held, err := s.Release(t.Context(), old); err != nil || !held {
				t.Fatalf("release: held %v, %v", held, err)
			}
		}
		heal := w.Stall(wire.Replies)
		acquired := make(chan driver.Grant, 1)
		go func() {
			var g driver.Grant
			var err error
			if requeue {
				g, _, err = s.(driver.Requeuer).Requeue(t.Context(), old, next)
			} else {
				g, err = s.Acquire(t.Context(), next)
			}
			if err != nil {
				t.Error(err)
			}
			acquired <- g
		}()
		deadline := time.Now().Add(30 * time.Second)
		until := func(what string, is func() bool) {
			t.Helper()
			for !is() {
				if time.Now().After(deadline) {
					t.Fatal("waited in vain until " + what)
				}
				<-time.NewTimer(2 * time.Millisecond).C
			}
		}
		kept := func() time.Duration { // by the server
			text, err := server.Do("PTTL", name)
			if err != nil {
				t.Fatal(err)
			}
			ms, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			return time.Duration(ms) * time.Millisecond
		}
		until("the server has the claim, and it is a while old", func() bool { p := kept(); return p > 0 && p < ttl*3/4 })
		sent := w.Count().Requests.Packets
		renewed := make(chan driver.Renewal, 1)
		started := time.Now()
		go func() {
			r, err := s.Renew(t.Context())
			if err != nil {
				t.Error(err)
			}
			renewed <- r
		}()
		until("the renewal is on its way", func() bool { return w.Count().Requests.Packets > sent })
		heal()
		g, r := <-acquired, <-renewed
		if !g.Held || len(r.Lost) > 0 {
			t.Fatalf("held %v, lost %v, want it held", g.Held, r.Lost)
		}
		if end := time.Now().Add(kept()); end.Before(started.Add(r.Valid)) {
			t.Errorf("requeue %v: the server keeps the claim until %v after the renewal began, which is trusted for %v", requeue, end.Sub(started), r.Valid)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
