package zklock_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
	"github.com/interlock-go/interlock/internal/zk"
	"github.com/interlock-go/interlock/zklock"
)

// Curator's Revoker asks a holder to let go by writing to its node.
func TestZ14_RevokedByCurator(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, _, _ := opened(t, server)
	hand := byHand(t, server)
	mine := storetest.Mutex("revoked")
	storetest.Asks(t, s, mine, true)
	do(t, hand, zk.Set("/revoked/"+children(t, hand, "/revoked")[0], []byte("__REVOKE__"), -1))
	select {
	case l := <-s.(driver.LossNotifier).Lost():
		if l != (driver.Loss{ID: mine.ID, Err: driver.ErrBroken}) {
			t.Errorf("lost %v", l)
		}
	case <-time.After(patience):
		t.Fatal("the holder is not told")
	}
	if _, err := s.Acquire(within(t), mine); !errors.Is(err, driver.ErrBroken) {
		t.Errorf("Acquire: %v", err)
	}
	storetest.Leaves(t, s, mine, false)
}

// Neither a look nor Close waits longer than its context for a connection that somebody else's look
// is making.
func TestALookHoldsUpNobody(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	var slow atomic.Bool
	var dialed sync.Once
	dials, release := make(chan struct{}), make(chan struct{})
	d, err := zklock.New(within(t), []string{server.Addr()}, &zklock.Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if slow.Load() {
			dialed.Do(func() { close(dials) })
			<-release
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}})
	if err != nil {
		t.Fatal(err)
	}
	slow.Store(true)
	first := make(chan error, 1)
	go func() {
		_, err := d.(driver.Inspector).Line(within(t), "looked at")
		first <- err
	}()
	<-dials
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	others := make(chan error, 2)
	go func() {
		_, err := d.(driver.Inspector).Line(ended, "looked at")
		others <- err
		others <- d.Close(within(t))
	}()
	for _, want := range []error{driver.ErrNotSent, nil} {
		select {
		case err := <-others:
			if !errors.Is(err, want) {
				t.Errorf("beside a look that connects: %v, want %v", err, want)
			}
		case <-time.After(patience):
			t.Fatal("what goes on beside a look that connects waits for that")
		}
	}
	close(release)
	if err := <-first; err == nil {
		t.Error("a look goes on after Close")
	}
}

// Nodes that the user may not read hide no others from a list, and a claim that may not be read
// stands in the line.
func TestWhatMayNotBeRead(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, d, _, _ := opened(t, server)
	storetest.Asks(t, s, storetest.Mutex("mine"), true)
	owner, err := zk.Dial(within(t), zk.Options{Addrs: []string{server.Addr()}, Timeout: time.Minute, Login: zk.Login{User: "app", Password: "secret"}})
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(context.Background())
	do(t, owner, zk.Create("/hidden", nil, zk.Persistent, zk.Creators), zk.Create("/hidden/lock-", nil, zk.EphemeralSequential, zk.Creators),
		zk.Create("/open", nil, zk.Persistent, zk.Anyone), zk.Create("/open/lock-", []byte("secret"), zk.EphemeralSequential, zk.Creators))
	lines, err := d.(driver.Inspector).Lines(within(t), "")
	if err != nil || len(lines) != 2 || lines[0].Name != "mine" || lines[1].Name != "open" {
		t.Fatalf("listed are %+v, %v", lines, err)
	}
	if c := lines[1].Claims; len(c) != 1 || !c[0].Held || !c[0].Foreign || c[0].Owner.Name != "" || c[0].Fence != 0 {
		t.Errorf("a claim that may not be read is shown as %+v", c)
	}
	_, err = d.(driver.Inspector).Line(within(t), "hidden")
	refused(t, err, "the access list of the node forbids it")
	_, err = s.Acquire(within(t), storetest.Mutex("hidden"))
	refused(t, err, "acquire /hidden: ")
}
