//go:build linux || darwin

package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/foreigntest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// A Redlock of another library over the same masters and one of ours with its key as the name are
// the same lock. The tests take it with the real libraries, in processes of their own.

// others are the libraries that take a lock on a majority.
var others = []foreigntest.Kind{foreigntest.Redlock4, foreigntest.Redlock5, foreigntest.SemaphoreRedlock}

func openClient(t *testing.T, set []*servertest.Server) *interlock.Client {
	t.Helper()
	client, err := interlock.Open(t.Context(), urlOf(addrs(set)), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func TestForeignRedlockAndOursExcludeEachOther(t *testing.T) {
	set := startMasters(t, 5)
	client := openClient(t, set)
	for _, kind := range others {
		t.Run(string(kind), func(t *testing.T) {
			theirs := foreigntest.Start(t, kind, addrs(set), "held by "+string(kind), time.Minute)
			name := theirs.Key()
			meet(t, client, theirs, name)
		})
	}
}

// meet has theirs hold while ours wait, and the other way round.
func meet(t *testing.T, client *interlock.Client, theirs *foreigntest.Client, name string) {
	t.Helper()
	theirs.MustLock(t, 10*time.Second)
	var held *interlock.HeldError
	if _, err := client.Mutex(name).TryLock(t.Context()); !errors.As(err, &held) || held.Holder == nil || !held.Holder.Foreign {
		t.Fatalf("a try while another program holds: %v, want %v by another program", err, interlock.ErrHeld)
	}
	got := make(chan *interlock.Lease, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		lease, err := client.Mutex(name).Lock(ctx)
		if err != nil {
			t.Errorf("after another program: %v", err)
		}
		got <- lease
	}()
	select {
	case <-got:
		t.Fatal("ours holds while another program does")
	case <-time.After(200 * time.Millisecond):
	}
	if err := theirs.Unlock(); err != nil {
		t.Errorf("unlock while ours waits: %v", err)
	}
	lease := <-got
	if lease == nil {
		t.FailNow()
	}
	if value, err := theirs.Lock(0); err == nil && value != "" {
		t.Fatalf("another program holds while ours does: %s", value)
	}
	if err := lease.Release(); err != nil {
		t.Errorf("release: %v", err)
	}
	if _, err := theirs.Lock(10 * time.Second); err != nil {
		t.Errorf("after ours: %v", err)
	}
	if err := theirs.Unlock(); err != nil {
		t.Errorf("unlock: %v", err)
	}
}

// Several programs of ours hand a lock on among each other without a pause. Another program that
// polls gets its turn.
func TestForeignRedlockGetsGaps(t *testing.T) {
	set := startMasters(t, 5)
	theirs := foreigntest.Start(t, foreigntest.Redlock5, addrs(set), "crowd", 5*time.Second)
	occupied, err := theirs.Lock(10 * time.Second) // so that it was seen
	if err != nil || occupied == "" {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	j := &judge{t: t}
	done := make(chan struct{}, 3)
	for range 3 {
		s := session(t, open(t, urlOf(addrs(set))), 5*time.Second)
		go func() {
			defer func() { done <- struct{}{} }()
			for ctx.Err() == nil {
				_ = contend(ctx, s, "crowd", true, j, nil)
			}
		}()
	}
	theirs.MustUnlock(t)
	for range 3 {
		if _, err := theirs.Lock(20 * time.Second); err != nil {
			t.Errorf("among ours: %v", err)
			break
		}
		if n := j.inside.Load(); n != 0 {
			t.Errorf("%d of ours hold as well", n)
		}
		theirs.MustUnlock(t)
	}
	cancel()
	for range 3 {
		<-done
	}
	t.Logf("%d grants of ours", j.grants)
}

// redsync and redis-py on a majority of the masters, each by itself, are a Redlock by hand.
func TestSingleLocksOnAMajorityKeepOursOut(t *testing.T) {
	set := startMasters(t, 5)
	client := openClient(t, set)
	var holders []*foreigntest.Client
	for i, kind := range []foreigntest.Kind{foreigntest.Redsync, foreigntest.RedisPy, foreigntest.Redsync} {
		c := foreigntest.Start(t, kind, []string{set[i].Addr()}, "by-hand", time.Minute)
		c.MustLock(t, 10*time.Second)
		holders = append(holders, c)
	}
	if _, err := client.Mutex("by-hand").TryLock(t.Context()); !errors.Is(err, interlock.ErrHeld) {
		t.Errorf("with three of five masters held by others: %v, want %v", err, interlock.ErrHeld)
	}
	for _, c := range holders {
		if err := c.Unlock(); err != nil {
			t.Errorf("unlock: %v", err)
		}
	}
	lease, err := client.Mutex("by-hand").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	theirs := foreigntest.Start(t, foreigntest.Redsync, []string{set[0].Addr()}, "by-hand", time.Minute)
	if value, err := theirs.Lock(0); err == nil && value != "" {
		t.Errorf("redsync holds on a master that ours has: %s", value)
	}
	_ = lease.Release()
}
