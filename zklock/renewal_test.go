package zklock_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/zk"
)

// A renewal is a change, which a majority has to make: what a leader answers alone may come from one that others have replaced.
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
