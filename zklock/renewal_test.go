package zklock_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/zk"
	"github.com/interlock-go/interlock/zklock"
)

// A renewal is a change, which a majority has to make: what a leader answers alone may come from
// one that others have replaced.
func TestZ17_ARenewalIsAChange(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, _, _ := opened(t, server)
	hand := byHand(t, server)
	made := func(path string) int64 {
		create := zk.Create(path, nil, zk.Ephemeral, zk.Anyone)
		do(t, hand, create)
		return create.Stat.Czxid
	}
	before := made("/before")
	renews(t, s)
	if n := made("/after") - before - 1; n != 1 {
		t.Errorf("a renewal is %d changes of the ensemble, want 1", n)
	}
}

// What becomes of the node under which the locks are ends no session.
func TestARenewalNeedsNoRoot(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	owner, err := zk.Dial(within(t), zk.Options{Addrs: []string{server.Addr()}, Timeout: time.Minute, Login: zk.Login{User: "app", Password: "secret"}})
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(context.Background())
	do(t, owner, zk.Create("/root", nil, zk.Persistent, zk.Anyone))
	s := logged(t, server.URL()+"/root")
	do(t, owner, zk.Delete("/root", -1))
	renews(t, s)
	made := zk.Create("/root", nil, zk.Persistent, zk.Creators)
	do(t, owner, made)
	renews(t, s)
	after := zk.Create("/after", nil, zk.Ephemeral, zk.Anyone)
	do(t, owner, after)
	if n := after.Stat.Czxid - made.Stat.Czxid - 1; n != 1 {
		t.Errorf("a renewal by who may not read the root is %d changes of the ensemble, want 1", n)
	}
}

// A leader whose followers are away leads on for a while, and prolongs no trust meanwhile.
func TestZ17_ALeaderAlone(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("three servers and their election, whose time nobody knows: make proof")
	}
	e := servertest.ZooKeeperEnsemble(t, 3)
	leader, err := e.Leader(within(t))
	if err != nil {
		t.Fatal(err)
	}
	d, err := driver.OpenURL(within(t), "zk://"+leader.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(context.Background())
	s, err := d.Open(within(t), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	renews(t, s)
	for _, member := range e.Members {
		if member == leader {
			continue
		}
		if err := member.Pause(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = member.Resume() }()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if r, err := s.Renew(ctx); err == nil {
		t.Errorf("a leader whose followers are away prolongs trust by %v", r.Valid)
	}
	for _, member := range e.Members {
		if member == leader {
			continue
		}
		if err := member.Resume(); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Await(within(t)); err != nil {
		t.Fatal(err)
	}
	renews(t, s)
}

// A session looks at its claims while one of them, a try that came too late, is taken out of line
// again: it leaves that one alone, whose node is going.
func TestALookLeavesAloneWhatIsDenied(t *testing.T) {
	t.Parallel()
	s := servertest.ZooKeeper(t)
	one, _, _, _ := opened(t, s)
	two, _, _, _ := opened(t, s)
	held, denied := of(driver.Mutex, "m"), of(driver.Mutex, "m")
	held.Queue, denied.Queue = true, true
	if g, err := one.Acquire(within(t), held); err != nil || !g.Held {
		t.Fatal(g, err)
	}
	if g, err := two.Acquire(within(t), denied); err != nil || g.Held {
		t.Fatal(g, err)
	}
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Resume() }()
	err := zklock.Denying(within(t), two, denied.ID, func(check func(context.Context) error) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := check(ctx); err != nil {
			t.Errorf("the servers were asked for the node of a claim that leaves: %v", err)
		}
		if err := s.Resume(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Errorf("to take it out of line: %v", err)
	}
	select {
	case l := <-two.(driver.LossNotifier).Lost():
		t.Errorf("a try that was denied is lost: %v", l.Err)
	default:
	}
	if g, err := two.Acquire(within(t), denied); err != nil || g.Held {
		t.Errorf("it asks again: held %t, %v, want that it waits", g.Held, err)
	}
}
