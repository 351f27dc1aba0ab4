package zk_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/zk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 30 * time.Second

// within bounds a test's step.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// told are the callbacks of a client as channels.
type told struct {
	events          chan zk.Event
	connected, over chan struct{}
}

// dial opens a session of 20 s, which ends with the test.
func dial(t *testing.T, o zk.Options, addrs ...string) (*zk.Client, told) {
	t.Helper()
	heard := told{make(chan zk.Event, 100), make(chan struct{}, 100), make(chan struct{}, 1)}
	o.Addrs = addrs
	if o.Timeout == 0 {
		o.Timeout = 20 * time.Second
	}
	o.Event = func(e zk.Event) { heard.events <- e }
	o.Connected = func() { heard.connected <- struct{}{} }
	o.Over = func() { heard.over <- struct{}{} }
	c, err := zk.Dial(within(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return c, heard
}

// hears insists that something comes.
func hears[T any](t *testing.T, from <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		t.Fatalf("%s did not come within %v", what, patience)
	}
	return v
}

// do insists that all calls are carried out.
func do(t *testing.T, c *zk.Client, calls ...*zk.Call) {
	t.Helper()
	if err := c.Do(within(t), calls...); err != nil {
		t.Fatal(err)
	}
	for i, call := range calls {
		if call.Err != nil {
			t.Fatalf("call %d of the flight: %v", i+1, call.Err)
		}
	}
}

// answers insists on the outcome of one call.
func answers(t *testing.T, c *zk.Client, call *zk.Call, want error) {
	t.Helper()
	if err := c.Do(within(t), call); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(call.Err, want) {
		t.Errorf("answered %v, want %v", call.Err, want)
	}
}

func TestAFlightIsAnsweredInOrder(t *testing.T) {
	t.Parallel()
	w := wire.New(t, servertest.ZooKeeper(t).Addr())
	c, _ := dial(t, zk.Options{}, w.Addr())
	answers(t, c, zk.Create("/a/n-", nil, zk.EphemeralSequential, zk.Anyone), zk.NoNode)
	before := w.Count().Requests.Packets
	parent, first, second := zk.Create("/a", []byte("parent"), zk.Container, zk.Anyone), zk.Create("/a/n-", []byte("1"), zk.EphemeralSequential, zk.Anyone), zk.Create("/a/n-", nil, zk.EphemeralSequential, zk.Anyone)
	names, data := zk.Children("/a", false), zk.Get("/a/n-0000000000", false)
	do(t, c, parent, first, second, names, data)
	if sent := w.Count().Requests.Packets - before; sent != 1 {
		t.Errorf("one flight was sent as %d packets", sent)
	}
	session, _ := c.Session()
	slices.Sort(names.Children)
	switch {
	case first.Path != "/a/n-0000000000" || second.Path != "/a/n-0000000001":
		t.Errorf("the nodes are %s and %s", first.Path, second.Path)
	case !slices.Equal(names.Children, []string{"n-0000000000", "n-0000000001"}) || names.Stat.Children != 2:
		t.Errorf("the children are %q, %+v", names.Children, names.Stat)
	case first.Stat.Owner != session || parent.Stat.Owner == session:
		t.Errorf("the nodes belong to %#x and %#x, and the session is %#x", first.Stat.Owner, parent.Stat.Owner, session)
	case first.Stat.Czxid == 0 || second.Stat.Czxid != first.Stat.Czxid+1:
		t.Errorf("they were made by the changes %#x and %#x", first.Stat.Czxid, second.Stat.Czxid)
	case string(data.Data) != "1" || data.Stat != first.Stat:
		t.Errorf("the first has data %q and %+v, want %+v", data.Data, data.Stat, first.Stat)
	}
	set := zk.Set(first.Path, []byte("2"), 0)
	do(t, c, set)
	if set.Stat.Version != 1 || set.Stat.Length != 1 {
		t.Errorf("after a change of its data: %+v", set.Stat)
	}
	answers(t, c, zk.Set(first.Path, nil, 0), zk.BadVersion)
	answers(t, c, zk.Delete(first.Path, 0), zk.BadVersion)
	answers(t, c, zk.Delete("/a", -1), zk.NotEmpty)
	answers(t, c, zk.Create("/a", nil, zk.Container, zk.Anyone), zk.NodeExists)
	answers(t, c, zk.Create("/..", nil, zk.Persistent, zk.Anyone), driver.ErrRefused)
	answers(t, c, zk.Create(first.Path+"/c", nil, zk.Persistent, zk.Anyone), driver.ErrRefused)
	answers(t, c, zk.Delete(first.Path, 1), nil)
}

func TestMultiIsOneStep(t *testing.T) {
	t.Parallel()
	c, _ := dial(t, zk.Options{}, servertest.ZooKeeper(t).Addr())
	do(t, c, zk.Create("/m", nil, zk.Persistent, zk.Anyone), zk.Create("/m/old", nil, zk.Ephemeral, zk.Anyone))
	gone, next := zk.Delete("/m/old", 0), zk.Create("/m/n-", []byte("x"), zk.EphemeralSequential, zk.Anyone)
	do(t, c, zk.Multi(gone, next))
	box := zk.Create("/box", nil, zk.Container, zk.Anyone)
	do(t, c, zk.Multi(box))
	if box.Path != "/box" {
		t.Errorf("a container made by a transaction is %q", box.Path)
	}
	if gone.Err != nil || next.Err != nil || next.Path != "/m/n-0000000001" {
		t.Errorf("deleted %v; created %q, %v", gone.Err, next.Path, next.Err)
	}
	for i, first := range []bool{true, false} { // whichever fails, the other one is not carried out
		fails, other := zk.Delete("/m/old", 0), zk.Create("/m/n-", nil, zk.EphemeralSequential, zk.Anyone)
		m := zk.Multi(other, fails)
		if first {
			m = zk.Multi(fails, other)
		}
		answers(t, c, m, zk.NoNode)
		<-other.Done()
		if !errors.Is(fails.Err, zk.NoNode) || other.Err == nil {
			t.Errorf("transaction %d: one failed with %v and the other with %v", i+1, fails.Err, other.Err)
		}
	}
	answers(t, c, zk.Multi(zk.Check("/m", 0), zk.Check(next.Path, 1)), zk.BadVersion)
	do(t, c, zk.Multi(zk.Check("/m", 0), zk.Check(next.Path, -1)))
	names := zk.Children("/m", false)
	do(t, c, names)
	if len(names.Children) != 1 {
		t.Errorf("after two that failed there are %q", names.Children)
	}
}

// Who has an answer from the leader has heard of every change before.
func TestEventsComeBeforeLaterAnswers(t *testing.T) {
	t.Parallel()
	addr := servertest.ZooKeeper(t).Addr()
	c, heard := dial(t, zk.Options{}, addr)
	other, _ := dial(t, zk.Options{}, addr)
	do(t, c, zk.Create("/e", nil, zk.Persistent, zk.Anyone))
	for range 20 {
		do(t, other, zk.Create("/e/n", nil, zk.Ephemeral, zk.Anyone))
		do(t, c, zk.Get("/e/n", true), zk.Children("/e", true))
		do(t, other, zk.Set("/e/n", nil, -1), zk.Delete("/e/n", -1))
		do(t, c, zk.Sync("/e"))
		var got []zk.Event
		for len(heard.events) > 0 {
			got = append(got, <-heard.events)
		}
		if want := []zk.Event{{Path: "/e/n", Type: zk.DataChanged}, {Path: "/e", Type: zk.ChildrenChanged}}; !slices.Equal(got, want) {
			t.Fatalf("before the answer came the events %v, want %v", got, want)
		}
	}
	answers(t, c, zk.Get("/e/n", true), zk.NoNode) // and nothing is watched
	do(t, other, zk.Create("/e/n", nil, zk.Ephemeral, zk.Anyone), zk.Delete("/e/n", -1))
	do(t, c, zk.Sync("/e"))
	if len(heard.events) != 0 {
		t.Errorf("of a node that was not there came %v", <-heard.events)
	}
}

// A connection that ends takes the answers with it, and nothing else.
func TestTheSessionOutlivesItsConnections(t *testing.T) {
	t.Parallel()
	addr := servertest.ZooKeeper(t).Addr()
	w := wire.New(t, addr)
	c, heard := dial(t, zk.Options{}, w.Addr())
	other, _ := dial(t, zk.Options{}, addr)
	do(t, c, zk.Create("/kept", nil, zk.Ephemeral, zk.Anyone))
	session, _ := c.Session()
	for i, way := range []wire.Direction{wire.Requests, wire.Replies} { // lost before, and after it was carried out
		heal := w.Stall(way)
		lost := zk.Create("/lost", nil, zk.Ephemeral, zk.Anyone)
		if err := c.Send(within(t), lost); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the request or its answer is held", func() bool {
			names := zk.Children("/", false)
			do(t, other, names)
			return w.Count().Requests.Held+w.Count().Replies.Held > 0 && slices.Contains(names.Children, "lost") == (way == wire.Replies)
		})
		w.Cut()
		heal()
		if err := lost.Wait(within(t)); !errors.Is(err, zk.ErrUnanswered) {
			t.Errorf("%d: the outcome is %v", i, err)
		}
		hears(t, heard.connected, "another connection")
		names, kept := zk.Children("/", false), zk.Get("/kept", false)
		do(t, c, zk.Sync("/"), names, kept)
		if kept.Stat.Owner != session || slices.Contains(names.Children, "lost") != (way == wire.Replies) {
			t.Errorf("%d: the node that was kept is of %#x, and there are %q", i, kept.Stat.Owner, names.Children)
		}
	}
}

// waitFor polls for a state of a wire, which tells nobody.
func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !is(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("never seen: %s", what)
		}
	}
}

// Of a server that is silent the client thinks no better than of one that is gone.
func TestASilentServerIsLeft(t *testing.T) {
	t.Parallel()
	s := servertest.ZooKeeper(t)
	first, second := wire.New(t, s.Addr()), wire.New(t, s.Addr())
	c, heard := dial(t, zk.Options{Timeout: 3 * time.Second}, first.Addr(), second.Addr())
	do(t, c, zk.Sync("/"))
	silent := first
	if first.Count().Requests.Packets == 0 {
		silent = second
	}
	defer silent.Stall(wire.Both)()
	unanswered := zk.Sync("/")
	if err := c.Send(within(t), unanswered); err != nil {
		t.Fatal(err)
	}
	if err := unanswered.Wait(within(t)); !errors.Is(err, zk.ErrUnanswered) {
		t.Errorf("the outcome is %v", err)
	}
	select {
	case <-heard.connected:
		do(t, c, zk.Sync("/"))
	case <-heard.over: // on a machine that took longer than the session had
	case <-time.After(patience):
		t.Error("no other server is asked")
	}
}

// A session that was ended elsewhere is not replaced.
func TestASessionThatIsEndedSaysSo(t *testing.T) {
	t.Parallel()
	addr := servertest.ZooKeeper(t).Addr()
	w := wire.New(t, addr)
	c, heard := dial(t, zk.Options{}, w.Addr())
	do(t, c, zk.Create("/mine", nil, zk.Ephemeral, zk.Anyone))
	session, password := c.Session()
	w.Refuse() // or each of the two takes the session from the other
	w.Cut()
	twin, err := zk.Dial(within(t), zk.Options{Addrs: []string{addr}, Timeout: 20 * time.Second, Session: session, Password: password})
	if err != nil {
		t.Fatal(err)
	}
	if err := twin.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := w.Accept(); err != nil {
		t.Fatal(err)
	}
	hears(t, heard.over, "the end of the session")
	if err := c.Do(within(t), zk.Get("/mine", false)); !errors.Is(err, driver.ErrSessionLost) {
		t.Errorf("a call answers %v", err)
	}
	other, _ := dial(t, zk.Options{}, addr)
	answers(t, other, zk.Get("/mine", false), zk.NoNode)
}

// Servers that come back without their data refuse who has seen more than they have. The session is
// gone then, and not merely away.
func TestServersThatHaveLostTheirDataHaveLostTheSession(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	c, heard := dial(t, zk.Options{Timeout: 2 * time.Second}, server.Addr())
	do(t, c, zk.Create("/kept", nil, zk.Persistent, zk.Anyone))
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.LoseData(); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(within(t)); err != nil {
		t.Fatal(err)
	}
	hears(t, heard.over, "the end of the session")
	if err := c.Do(within(t), zk.Get("/", false)); !errors.Is(err, driver.ErrSessionLost) {
		t.Errorf("Do: %v; want that the session is lost", err)
	}
}

// Requests keep a session alive, and nothing else does unless it was asked for.
func TestAHeartbeatKeepsTheSession(t *testing.T) {
	t.Parallel()
	addr := servertest.ZooKeeper(t).Addr()
	_, quiet := dial(t, zk.Options{Timeout: 3 * time.Second}, addr)
	c, beats := dial(t, zk.Options{Timeout: 3 * time.Second, Heartbeat: true}, addr)
	if c.Timeout() != 3*time.Second {
		t.Errorf("the server gave %v", c.Timeout())
	}
	hears(t, quiet.over, "the end of a session without a heartbeat")
	if len(beats.over) != 0 {
		t.Error("a session with a heartbeat has ended, too")
	}
}

// What its caller left is answered all the same; what was not sent in time is not sent.
func TestContexts(t *testing.T) {
	t.Parallel()
	w := wire.New(t, servertest.ZooKeeper(t).Addr())
	c, _ := dial(t, zk.Options{}, w.Addr())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Do(ended, zk.Create("/never", nil, zk.Persistent, zk.Anyone)); !errors.Is(err, driver.ErrNotSent) || !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that had ended: %v", err)
	}
	heal := w.Stall(wire.Replies)
	left := zk.Create("/left", nil, zk.Persistent, zk.Anyone)
	ctx, cancel := context.WithCancel(t.Context())
	if err := c.Send(ctx, left); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := left.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that goes hears %v", err)
	}
	heal()
	if err := left.Wait(within(t)); err != nil {
		t.Error(err)
	}
	answers(t, c, zk.Get("/never", false), zk.NoNode)
	w.Refuse()
	w.Cut()
	waitFor(t, "the client has no connection", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		err := c.Do(ctx, zk.Get("/", false))
		return errors.Is(err, driver.ErrNotSent) && errors.Is(err, context.DeadlineExceeded)
	})
	if err := w.Accept(); err != nil {
		t.Fatal(err)
	}
	do(t, c, zk.Get("/", false))
}

// Every server that cannot be used is named with its reason.
func TestDialSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	l, err := wire.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for i := 0; ; i++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if i > 0 {
				_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			}
			_ = c.(*net.TCPConn).CloseWrite()
			_ = c.Close()
		}
	}()
	nobody := servertest.Nobody(t)
	for _, c := range []struct {
		addrs []string
		want  []string
	}{
		{nil, []string{"no server"}},
		{[]string{nobody}, []string{nobody, "refused"}},
		{[]string{l.Addr().String(), nobody}, []string{l.Addr().String(), "closed the connection", "maxClientCnxns", nobody}},
		{[]string{l.Addr().String()}, []string{l.Addr().String(), "does not open a session"}},
	} {
		_, err := zk.Dial(within(t), zk.Options{Addrs: c.addrs, Timeout: time.Second})
		if err == nil || len(c.addrs) > 0 && !errors.Is(err, driver.ErrNotSent) {
			t.Errorf("%q: %v", c.addrs, err)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %v, which does not say %q", c.addrs, err, part)
			}
		}
	}
}

// A session goes on at another member when the leader dies.
func TestAnotherMemberTakesOver(t *testing.T) {
	t.Parallel()
	e := servertest.ZooKeeperEnsemble(t, 3)
	var addrs []string
	for _, s := range e.Members {
		addrs = append(addrs, s.Addr())
	}
	c, heard := dial(t, zk.Options{Timeout: time.Minute}, addrs...)
	do(t, c, zk.Create("/kept", nil, zk.Ephemeral, zk.Anyone))
	leader, err := e.Leader(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	hears(t, heard.connected, "another connection") // a member without a leader closes those of its clients
	session, _ := c.Session()
	kept := zk.Get("/kept", false)
	do(t, c, zk.Sync("/"), kept)
	if kept.Stat.Owner != session {
		t.Errorf("its node is of %#x, want %#x", kept.Stat.Owner, session)
	}
}
