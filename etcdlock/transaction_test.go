package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/etcdlock"
	"github.com/interlock-go/interlock/internal/servertest"
)

// briefly makes a call, and gives it up when its request is held.
func briefly(t *testing.T, w *way, call func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	given := make(chan error, 1)
	go func() { given <- call(ctx) }()
	eventually(t, "the request is held", w.met)
	cancel()
	if err := <-given; !errors.Is(err, context.Canceled) {
		t.Fatalf("a request without an answer: %v", err)
	}
}

// patient has an answer awaited for as long as a test does.
var patient = &etcdlock.Options{Timeout: patience}

// An Acquire that was given up and comes after its Release takes nothing, whatever its session does
// meanwhile.
func TestLateAcquire(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	w := newWay(t, server.Addr())
	s := session(t, opened(t, w.client, patient))
	for _, mode := range []string{"the name is free", "the next one holds", "it was a requeue"} {
		requeued := mode == "it was a requeue"
		old, c := mutex("late"), mutex("late")
		if requeued {
			hold(t, s, old)
		}
		deliver := w.hold(0)
		briefly(t, w, func(ctx context.Context) (err error) {
			if requeued {
				_, _, err = s.(driver.Requeuer).Requeue(ctx, old, c)
			} else {
				_, err = s.Acquire(ctx, c)
			}
			return err
		})
		if requeued {
			if _, err := s.Release(t.Context(), old); err != nil {
				t.Fatal(err)
			}
		}
		if held, err := s.Release(t.Context(), c); held || err != nil {
			t.Fatalf("release: %v, %v", held, err)
		}
		next := mutex("late")
		if mode != "the name is free" {
			hold(t, s, next) // in the place of the one that was given up
		}
		if !deliver() {
			t.Fatal("nothing was held")
		}
		eventually(t, "what was late has had its answer", func() bool { return w.late.Load() > 0 })
		w.late.Store(0)
		if mode != "the name is free" {
			if g, err := s.Acquire(t.Context(), next); err != nil || !g.Held {
				t.Fatalf("%s: a request that was late has taken it from who holds: %v", mode, err)
			}
			release(t, s, next)
		}
		if all := keys(t, w.client); len(all) != 1 { // the session's
			t.Fatalf("%s: a request that was late has left %q", mode, all)
		}
	}
}

// Many Acquires are given up and released at the same time: each Release finds the version of the
// session's key that the others leave, whichever of their answers is read first.
func TestManyLateAcquires(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	w := newWay(t, server.Addr())
	s := session(t, opened(t, w.client, patient))
	heal := w.wire.Stall(wire.Both)
	var line []driver.Claim
	var all sync.WaitGroup
	for i := range 50 {
		c := mutex(fmt.Sprint("late", i))
		line = append(line, c)
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if g, err := s.Acquire(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: a request without an answer: %+v, %v", c.Name, g, err)
			}
		})
	}
	all.Wait()
	heal()
	for _, c := range line {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if _, err := s.Release(ctx, c); err != nil { // whether it was held depends on which request came first
				t.Errorf("release of %s: %v", c.Name, err)
			}
		})
	}
	all.Wait()
	if left := keys(t, w.client); len(left) != 1 { // the session's
		t.Errorf("left behind: %q", left)
	}
}

// A Release that was given up and comes later takes nothing from a claim that has the same key
// meanwhile.
func TestLateRelease(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	w := newWay(t, server.Addr())
	s := session(t, opened(t, w.client, patient))
	c, next := mutex("late"), mutex("late")
	hold(t, s, c)
	deliver := w.hold(0)
	briefly(t, w, func(ctx context.Context) error { _, err := s.Release(ctx, c); return err })
	if _, err := s.Release(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	g := hold(t, s, next)
	if !deliver() {
		t.Fatal("nothing was held")
	}
	eventually(t, "what was late has had its answer", func() bool { return w.late.Load() > 0 })
	if again, err := s.Acquire(t.Context(), next); err != nil || again != g {
		t.Errorf("a Release that was late has changed %+v to %+v, %v", g, again, err)
	}
	release(t, s, next)
}
