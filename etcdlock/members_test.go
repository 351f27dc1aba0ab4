package etcdlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
)

// The leader of three members is killed, stopped and stopped for a while: what is held stays, who
// waits is let in, tokens grow.
func TestLeaderGoes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("three elections: make proof")
	}
	m := servertest.EtcdMembers(t, 3)
	c := client(t, m.Addrs()...)
	d := opened(t, c, nil)
	a, b := session(t, d), session(t, d)
	last := uint64(0)
	for i, name := range []string{"killed", "stopped", "paused"} {
		first, second := mutex("a"), mutex("a")
		patiently(t, name+": acquire", func(ctx context.Context) error { _, err := a.Acquire(ctx, first); return err })
		patiently(t, name+": queue", func(ctx context.Context) error { _, err := b.Acquire(ctx, second); return err })
		told := begin(t, b, second)
		leader := leaderOf(t, c, m)
		if err := []func() error{leader.Kill, leader.Stop, leader.Pause}[i](); err != nil {
			t.Fatal(err)
		}
		patiently(t, name+": renew", func(ctx context.Context) error {
			r, err := a.Renew(ctx)
			if len(r.Lost) > 0 {
				t.Errorf("%s: lost %v", name, r.Lost)
			}
			return err
		})
		held := false
		patiently(t, name+": release", func(ctx context.Context) (err error) { held, err = a.Release(ctx, first); return err })
		if !held {
			t.Logf("%s: the first release had no answer", name)
		}
		g := <-told
		if !g.Held {
			g = await(t, b, second)
		}
		if g.Fence <= last {
			t.Errorf("%s: token %d after %d", name, g.Fence, last)
		}
		last = g.Fence
		patiently(t, name+": the next release", func(ctx context.Context) error { _, err := b.Release(ctx, second); return err })
		if i == 2 {
			if err := leader.Resume(); err != nil {
				t.Fatal(err)
			}
		} else if err := leader.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// One of the members takes requests and answers none, as one that is paused: renewals are answered
// by another one, and nobody loses a lock.
func TestOneMemberIsSilent(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	silent := wire.New(t, server.Addr())
	// Without the client's look after connections, which would find the silent one before the
	// test's patience is over.
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Addr(), silent.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s := session(t, opened(t, c, patient))
	hold(t, s, mutex("a"))
	queue(t, s, mutex("a")) // a renewal looks at its line, too
	eventually(t, "it has been asked", func() bool {
		was := silent.Count().Replies.Packets
		for range 2 {
			if _, err := c.Get(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		}
		return was > 0 && silent.Count().Replies.Packets > was
	})
	defer silent.Stall(wire.Both)()
	for range 2 {
		if r, err := s.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
			t.Fatalf("a renewal while one of two members is silent: %+v, %v", r, err)
		}
	}
}

// A request that another member has answered in the place of a silent one comes late all the same:
// it puts nothing into a line that its claim has left or was not let into, and takes nothing from a
// claim that came later.
func TestTheSilentMemberGoesOn(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	w := newWay(t, server.Addr(), server.Addr())
	admin := client(t, server.Addr())
	s, other := session(t, opened(t, w.client, patient)), session(t, opened(t, admin, nil))
	// late holds the first attempt of a call back until the function that it returns is called.
	late := func(call func()) (come func()) {
		deliver := w.hold(0)
		call()
		return func() {
			t.Helper()
			if !deliver() {
				t.Fatal("nothing was held")
			}
			eventually(t, "what was late has had its answer", func() bool { return w.late.Load() > 0 })
			w.late.Store(0)
		}
	}
	free := func(what string) {
		t.Helper()
		if all := keys(t, admin); len(all) != 2 { // the sessions'
			t.Fatalf("%s that came late has left %q", what, all)
		}
	}

	c := mutex("a")
	come := late(func() { hold(t, s, c) })
	release(t, s, c)
	come()
	free("an Acquire")

	theirs, try := mutex("a"), mutex("a")
	try.Queue = false
	hold(t, other, theirs)
	come = late(func() {
		if g := acquire(t, s, try); g.Held {
			t.Fatal("two hold \"a\"")
		}
	})
	release(t, other, theirs)
	come()
	free("a try")

	c = mutex("a")
	hold(t, s, c)
	come = late(func() { release(t, s, c) })
	next := mutex("a")
	g := hold(t, s, next)
	come()
	if again := acquire(t, s, next); again != g {
		t.Errorf("a Release that came late has changed %+v to %+v", g, again)
	}
	release(t, s, next)
	free("a Release")
}

// patiently calls until it is answered.
func patiently(t *testing.T, what string, call func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		err := call(ctx)
		if err == nil {
			return
		}
		if ctx.Err() != nil || errors.Is(err, driver.ErrSessionLost) || errors.Is(err, driver.ErrGone) {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// leaderOf asks the members who leads them.
func leaderOf(t *testing.T, c *clientv3.Client, m *servertest.Etcds) (leader *servertest.Server) {
	t.Helper()
	eventually(t, "there is a leader", func() bool {
		for _, s := range m.Members {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			r, err := c.Status(ctx, s.Addr())
			cancel()
			if err == nil && r.Leader == r.Header.MemberId {
				leader = s
				return true
			}
		}
		return false
	})
	return leader
}
