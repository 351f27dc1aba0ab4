//go:build linux || darwin

package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

func TestSession_FileRemovedByHand(t *testing.T) {
	d, s := openAt(t, storeIn(t), long)
	acquire(t, s, mutexOf("n"))
	if err := os.Remove(d.st.SessionPath(s.(*session).key)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Renew(t.Context()); !errors.Is(err, driver.ErrSessionLost) {
		t.Errorf("renewal of a session without a file: %v", err)
	}
	if _, ok := <-s.(driver.LossNotifier).Lost(); ok {
		t.Error("Lost yields a claim, not the end of the session")
	}
}

func TestSession_IDIsUsedOnce(t *testing.T) {
	d, _ := openAt(t, storeIn(t), long)
	spec := driver.Spec{ID: driver.NewID(), TTL: long}
	if _, err := d.Open(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Open(t.Context(), spec); !errors.Is(err, driver.ErrRefused) {
		t.Errorf("the same id again: %v", err)
	}
	for _, ttl := range []time.Duration{0, -1, minTTL - 1, maxTTL + 1, 1<<63 - 1} {
		if _, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: ttl}); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("TTL %v: %v", ttl, err)
		}
	}
}

// A broken holder that renews and does not release keeps the next one out until the time that it had, and no longer.
func TestBreak_EndsWithTheTimeTheHolderHad(t *testing.T) {
	dir := storeIn(t)
	const ttl = time.Second
	d, s := openAt(t, dir, ttl)
	_, s2 := openAt(t, dir, long)
	c := mutexOf("n")
	g := acquire(t, s, c)
	at := time.Now()
	next := mutexOf("n")
	acquire(t, s2, next)
	if err := d.Break(t.Context(), "n", driver.PublicID(c.ID), g.Fence, false); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for ctx.Err() == nil {
			_, _ = s.Renew(ctx)
			time.Sleep(50 * time.Millisecond)
		}
	}()
	if _, err := hold(within(t, soon), s2, next); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(at); took < ttl-50*time.Millisecond {
		t.Errorf("granted after %v, while the broken holder had until %v", took, ttl)
	}
}

func TestStats_OneWriteEach(t *testing.T) {
	dir := storeIn(t)
	d, s := openAt(t, dir, long)
	d2, s2 := openAt(t, dir, long)
	count := func(what string, d *Driver, want uint64, f func()) {
		t.Helper()
		before := d.Stats()
		f()
		if got := d.Stats().RecordWrites - before.RecordWrites; got != want {
			t.Errorf("%s: %d writes of records, want %d", what, got, want)
		}
	}
	c := mutexOf("n")
	count("free acquire", d, 1, func() { acquire(t, s, c) })
	count("asked again", d, 0, func() { acquire(t, s, c) })
	try := mutexOf("n")
	try.Queue = false
	count("refused try", d2, 0, func() { acquire(t, s2, try) })
	count("renewal", d, 0, func() {
		if _, err := s.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	next := mutexOf("n")
	count("requeue", d, 1, func() {
		if _, held, err := s.(driver.Requeuer).Requeue(t.Context(), c, next); err != nil || !held {
			t.Fatal(held, err)
		}
	})
	count("release", d, 1, func() { release(t, s, next) })
}

// Few open records serve many held names, and renewals.
func TestFiles_FewServeManyNames(t *testing.T) {
	d, err := New(storeIn(t), &Options{Files: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(t.Context())
	s := openSession(t, d, long)
	var claims []driver.Claim
	for i := range 100 {
		c := mutexOf(fmt.Sprint("n", i))
		if g := acquire(t, s, c); !g.Held {
			t.Fatal("not held")
		}
		claims = append(claims, c)
	}
	if n := d.names.open.Len(); n > 4 {
		t.Errorf("%d records are open", n)
	}
	if r, err := s.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
		t.Fatalf("renewal: %+v, %v", r, err)
	}
	for _, c := range claims {
		release(t, s, c)
	}
	if n := len(d.names.byName); n > 4 {
		t.Errorf("%d names are remembered after all were released", n)
	}
}

// A dead holder of another kind does not make a name unusable.
func TestAcquire_AfterADeadHolderOfAnotherKind(t *testing.T) {
	dir := storeIn(t)
	_, s := openAt(t, dir, long)
	w := startWorker(t, task{Do: "hold", Dir: dir, Name: "n", TTL: long})
	w.hear(t, "held")
	permit := driver.Claim{Name: "n", ID: driver.NewID(), Kind: driver.Permit, Weight: 1, Limit: 3, Queue: true}
	if _, err := s.Acquire(t.Context(), permit); !errors.Is(err, driver.ErrRefused) {
		t.Fatalf("a permit beside a mutex: %v", err)
	}
	w.kill()
	until(t, soon, "a permit after the holder of the mutex died", func() bool {
		g, err := s.Acquire(t.Context(), permit)
		return err == nil && g.Held
	})
}

// A driver is closed while others open sessions and renew: it returns, and leaves no session of its own in the store.
func TestDriver_ClosesWhileSessionsAreOpened(t *testing.T) {
	dir := storeIn(t)
	for range 50 {
		d, err := New(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		opened := make(chan struct{})
		for range 4 {
			go func() {
				defer func() { opened <- struct{}{} }()
				for {
					s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: long})
					if err != nil {
						return // the driver is closed
					}
					go func() { _, _ = s.Renew(context.WithoutCancel(t.Context())) }()
				}
			}()
		}
		closed := make(chan error, 1)
		go func() { closed <- d.Close(context.WithoutCancel(t.Context())) }()
		select {
		case err := <-closed:
			if err != nil {
				t.Errorf("close: %v", err)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("Close does not return")
		}
		for range 4 {
			<-opened
		}
	}
	left, err := os.ReadDir(dir + "/sessions")
	if err != nil || len(left) > 0 {
		t.Errorf("%d files of sessions are left (%v)", len(left), err)
	}
}
