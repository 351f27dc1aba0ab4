package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
)

// A thousand wait in ten sessions, or fewer where time is short; some give up, and the others are
// let in one after the other, in the order in which they came.
func TestThousandWait(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	n := 1000
	if testing.Short() {
		n = 150
	}
	var sessions []driver.Session
	for range 10 {
		sessions = append(sessions, session(t, opened(t, client(t, server.Addr()), patient)))
	}
	first := mutex("many")
	last := hold(t, sessions[0], first).Fence
	var line []driver.Claim
	for i := range n {
		line = append(line, mutex("many"))
		queue(t, sessions[i%10], line[i])
	}
	turns := make(chan int, n)
	fences := make([]uint64, n)
	var all sync.WaitGroup
	for i, c := range line {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 4*patience)
			defer cancel()
			if i%7 == 3 { // it gives up
				if _, err := sessions[i%10].Release(ctx, c); err != nil {
					t.Errorf("%d gives up: %v", i, err)
				}
				return
			}
			for {
				g, err := sessions[i%10].Wait(ctx, c)
				if err != nil && ctx.Err() != nil {
					t.Errorf("%d waits: %v", i, err)
					return
				}
				if g.Held {
					fences[i] = g.Fence
					turns <- i
					break
				}
			}
			if held, err := sessions[i%10].Release(ctx, c); err != nil || !held {
				t.Errorf("%d leaves: held %v, %v", i, held, err)
			}
		})
	}
	release(t, sessions[0], first)
	all.Wait()
	close(turns)
	before := -1
	for i := range turns {
		if i < before || fences[i] <= last {
			t.Fatalf("%d with token %d after %d with token %d", i, fences[i], before, last)
		}
		before, last = i, fences[i]
	}
}

// Whatever bytes a name has, it is one lock, and no other name's.
func TestOddNames(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	d := opened(t, client(t, server.Addr()), nil)
	a, b := session(t, d), session(t, d)
	names := []string{"a\x00b", "a", "\x00", "ä/ö", "\xff\xfe", "\xff", "a//b", "/", "//", "a-1", " ", "a/", "a/b", "%2F", "interlock:sessionsx", "694d/694d-1"}
	for _, name := range names {
		try := mutex(name)
		try.Queue = false
		hold(t, a, try)
		if g, err := b.Acquire(t.Context(), mutex(name)); err != nil || g.Held || g.Holder == nil {
			t.Errorf("%q: %+v, %v, want it held by the other one", name, g, err)
		}
	}
	lines, err := d.(driver.Inspector).Lines(t.Context(), "")
	var seen []string
	for _, l := range lines {
		seen = append(seen, l.Name)
		if len(l.Claims) != 2 {
			t.Errorf("%q: %d claims, want 2", l.Name, len(l.Claims))
		}
	}
	slices.Sort(names)
	if err != nil || !slices.Equal(seen, names) {
		t.Errorf("seen %q, %v, want %q", seen, err, names)
	}
}

// The program closes its client while claims hold and wait: every call says so soon, and so does
// the driver's end.
func TestClientIsClosed(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	c := client(t, server.Addr())
	d := opened(t, c, nil)
	s := session(t, d)
	first, second := mutex("a"), mutex("a")
	hold(t, s, first)
	queue(t, s, second)
	told := begin(t, s, second)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, renewed := s.Renew(ctx)
	_, acquired := s.Acquire(ctx, mutex("b"))
	_, released := s.Release(ctx, first)
	for what, err := range map[string]error{"renew": renewed, "acquire": acquired, "release": released} {
		if err == nil {
			t.Errorf("%s over a client that is closed is answered", what)
		}
	}
	if err := d.Close(ctx); err == nil {
		t.Error("the sessions are closed over a client that is closed")
	}
	if g := <-told; g.Held {
		t.Errorf("who waits is told %+v", g)
	}
	if ctx.Err() != nil {
		t.Error("it took half a minute")
	}
}

// Readers, writers and permits come and go at random; their keys are deleted and leases revoked by
// hand. Nobody holds against the rule.
func TestMixedByHand(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	admin := client(t, server.Addr())
	d := opened(t, client(t, server.Addr()), nil)
	var readers, writers, permits atomic.Int64
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			s := session(t, d)
			for n := range 25 {
				c := driver.Claim{Name: "rw", ID: driver.NewID(), Kind: driver.Read, Weight: 1, Limit: driver.All, Queue: true}
				count := &readers
				switch (i + n) % 3 {
				case 0:
					c.Kind, c.Weight, count = driver.Write, driver.All, &writers
				case 1:
					c = permit("permits")
					count = &permits
				}
				await(t, s, acquired(t, s, c))
				now := count.Add(1)
				r, w := readers.Load(), writers.Load()
				if count == &permits && now > 2 || count == &writers && (now > 1 || r > 0) || count == &readers && w > 0 {
					t.Errorf("%d %vs hold, %d readers, %d writers", now, c.Kind, r, w)
				}
				acquire(t, s, c) // it holds for a while
				count.Add(-1)
				release(t, s, c)
			}
		})
	}
	all.Wait()

	// A lease is revoked while many wait behind it, and some keys of those are deleted.
	first, other := session(t, d), session(t, d)
	held := mutex("deep")
	hold(t, first, held)
	var line []driver.Claim
	for range 50 {
		line = append(line, mutex("deep"))
		queue(t, other, line[len(line)-1])
	}
	tail := session(t, d)
	last := mutex("deep")
	queue(t, tail, last)
	told := begin(t, tail, last)
	r, err := admin.Get(t.Context(), "deep/", clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend), clientv3.WithLimit(2))
	if err != nil || len(r.Kvs) != 2 {
		t.Fatalf("%d keys, %v", len(r.Kvs), err)
	}
	for _, kv := range r.Kvs { // who holds, and all who wait but one
		if _, err := admin.Revoke(t.Context(), clientv3.LeaseID(kv.Lease)); err != nil {
			t.Fatal(err)
		}
	}
	if g := <-told; !g.Held {
		await(t, tail, last)
	}
	for what, call := range map[string]func() error{
		"who held":   func() error { _, err := first.Renew(t.Context()); return err },
		"who waited": func() error { _, err := other.Wait(t.Context(), line[40]); return err },
	} {
		if err := call(); !errors.Is(err, driver.ErrSessionLost) {
			t.Errorf("%s is told %v, want that the session is lost", what, err)
		}
	}
	if l, err := d.(driver.Inspector).Line(t.Context(), "deep"); err != nil || len(l.Claims) != 1 {
		t.Errorf("line %s, %v, want the last one alone", fmt.Sprint(l), err)
	}
}

// acquired is c, in line.
func acquired(t *testing.T, s driver.Session, c driver.Claim) driver.Claim {
	t.Helper()
	acquire(t, s, c)
	return c
}
