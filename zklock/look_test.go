package zklock_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
	"github.com/interlock-go/interlock/internal/zk"
	"github.com/interlock-go/interlock/zklock"
)

// Neither a look nor Close waits longer than its context for a connection that somebody else's look is making.
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

// Nodes that the user may not read hide no others from a list, and a claim that may not be read stands in the line.
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

// Who may not see whether the one ahead is there is refused, and stands in nobody's way.
func TestTheOneAheadMayNotBeRead(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, _, _ := opened(t, server)
	hand := byHand(t, server)
	owner, err := zk.Dial(within(t), zk.Options{Addrs: []string{server.Addr()}, Timeout: time.Minute, Login: zk.Login{User: "app", Password: "secret"}})
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(context.Background())
	hidden := zk.Create("/mixed/lock-", nil, zk.EphemeralSequential, zk.Creators)
	do(t, owner, zk.Create("/mixed", nil, zk.Persistent, zk.Anyone), hidden)
	_, err = s.Acquire(within(t), storetest.Mutex("mixed"))
	refused(t, err, "the access list of the node forbids it")
	if in := children(t, hand, "/mixed"); len(in) != 1 {
		t.Errorf("after a claim was refused there stand %q", in)
	}
	between := zk.Create("/mixed/lock-", nil, zk.EphemeralSequential, zk.Anyone)
	do(t, hand, between)
	mine := storetest.Mutex("mixed")
	storetest.Asks(t, s, mine, false)
	do(t, hand, zk.Delete(between.Path, -1))
	_, err = s.Wait(within(t), mine)
	refused(t, err, "the access list of the node forbids it")
	if in := children(t, hand, "/mixed"); len(in) != 1 {
		t.Errorf("after a wait was refused there stand %q", in)
	}
	do(t, owner, zk.Delete(hidden.Path, -1))
	storetest.Asks(t, s, storetest.Mutex("mixed"), true)
}

// silent is a connection that brings a session, and no answer after it.
type silent struct {
	net.Conn
	left  int
	quiet context.CancelFunc
}

func (c *silent) Read(b []byte) (int, error) {
	if c.left == 0 {
		c.quiet()
		_, err := io.Copy(io.Discard, c.Conn) // until it is closed
		return 0, cmp.Or(err, io.EOF)
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}

// That a server is silent is told with how long, and is not the end of the caller's own time.
func TestASilentServerIsNotTheCallersDeadline(t *testing.T) {
	t.Parallel()
	mute, err := wire.Loopback() // whose connections nobody takes
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	server := servertest.ZooKeeper(t)
	for what, o := range map[string]*zklock.Options{
		"dial": {Dial: func(ctx context.Context, network, addr string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }},
		"open": {},
		"TLS":  {TLS: &tls.Config{MinVersion: tls.VersionTLS12}},
		"ask": {Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			nc, err := new(net.Dialer).DialContext(ctx, network, server.Addr())
			return &silent{nc, 41, func() {}}, err
		}},
	} {
		o.Timeout = 300 * time.Millisecond
		_, err := zklock.Once(within(t), []string{mute.Addr().String()}, o)
		if !errors.Is(err, driver.ErrNotSent) || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer for 300ms") {
			t.Errorf("%s: %v; want that nothing was sent, for want of an answer for 300ms", what, err)
		}
	}
}

func TestAServerThatOpensASessionAndIsSilent(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	ctx, cancel := context.WithCancel(within(t))
	_, err := zklock.New(ctx, []string{server.Addr()}, &zklock.Options{Timeout: patience, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &silent{nc, 41, cancel}, err // a length, and the answer to a connection
	}})
	if !errors.Is(err, driver.ErrNotSent) || !strings.Contains(err.Error(), "opened a session, and answers nothing") {
		t.Errorf("%v; want that it says so", err)
	}
}
