package wire_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ending is how the server saw a connection end.
type ending struct{ err error }

// echo answers each line with itself, and ends a connection when its client does.
func echo(t *testing.T) (addr string, closed <-chan ending) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan ending, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, err := io.Copy(c, c)
				c.Close()
				ended <- ending{err}
			}()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String(), ended
}

// client is a connection whose calls fail the test after a few seconds instead of hanging.
type client struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func dial(t *testing.T, w *wire.Wire) *client {
	t.Helper()
	c, err := net.Dial("tcp", w.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &client{c, t, bufio.NewReader(c)}
}

func (c *client) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		c.t.Fatalf("cannot send %q: %v", line, err)
	}
}

func (c *client) receive(want string) {
	c.t.Helper()
	got, err := c.r.ReadString('\n')
	if err != nil || got != want+"\n" {
		c.t.Fatalf("received %q and error %v, want %q", got, err, want)
	}
}

func (c *client) fails(want error) {
	c.t.Helper()
	got, err := c.r.ReadString('\n')
	if !errors.Is(err, want) {
		c.t.Fatalf("received %q and error %v, want %v", got, err, want)
	}
}

// until polls the counts, which no channel tells of.
func until(t *testing.T, w *wire.Wire, what string, reached func(wire.Counts) bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !reached(w.Count()); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not after 10 s: %+v", what, w.Count())
		}
	}
}

func TestWireCarriesAndCounts(t *testing.T) {
	addr, closed := echo(t)
	w := wire.New(t, addr)
	c := dial(t, w)
	c.send("hello")
	c.receive("hello")
	got, want := w.Count(), wire.Counts{
		Connections: 1, Open: 1,
		Requests: wire.Flow{Packets: 1, Bytes: 6}, Replies: wire.Flow{Packets: 1, Bytes: 6},
	}
	if got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	c.Close()
	if end := <-closed; end.err != nil {
		t.Errorf("the server saw the client's close as %v", end.err)
	}
	until(t, w, "the connection is gone", func(c wire.Counts) bool { return c.Open == 0 })

	big := strings.Repeat("x", 3<<20)
	c = dial(t, w)
	sent := make(chan error)
	go func() {
		_, err := io.WriteString(c, big+"\n")
		sent <- err
	}()
	c.receive(big)
	if err := <-sent; err != nil {
		t.Errorf("sending %d bytes: %v", len(big), err)
	}
}

func TestStallHoldsOneWayOrBoth(t *testing.T) {
	for _, way := range []wire.Direction{wire.Requests, wire.Replies, wire.Both} {
		t.Run(way.String(), func(t *testing.T) {
			addr, _ := echo(t)
			w := wire.New(t, addr)
			c := dial(t, w)
			c.send("before")
			c.receive("before")

			heal, healOther := w.Stall(way), w.Stall(way)
			before := w.Count()
			c.send("held")
			c.send("too")
			if way == wire.Replies {
				until(t, w, "the replies are held", func(c wire.Counts) bool { return c.Replies.Held > 0 && c.Requests.Bytes == before.Requests.Bytes+9 })
			} else {
				until(t, w, "the requests are held", func(c wire.Counts) bool { return c.Requests.Held > 0 && c.Requests.Packets == before.Requests.Packets })
			}
			heal()
			heal() // again: nothing
			if err := c.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			if b, err := c.r.ReadByte(); err == nil {
				t.Fatalf("received %q through a wire that one of two stalls still holds", b)
			}
			if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			healOther()
			c.receive("held")
			c.receive("too")
			if n := w.Count(); n.Requests.Held+n.Replies.Held != 0 {
				t.Errorf("held after the stall: %+v", n)
			}
		})
	}
}

// A client that gives up while its reply is held: the server learns of it, then and there.
func TestCloseReachesTheServerPastHeldReplies(t *testing.T) {
	addr, closed := echo(t)
	w := wire.New(t, addr)
	c := dial(t, w)
	heal := w.Stall(wire.Replies)
	c.send("asked")
	until(t, w, "the reply is held", func(c wire.Counts) bool { return c.Replies.Held == 1 })
	c.Close()
	<-closed
	if n := w.Count(); n.Open != 1 {
		t.Errorf("%d connections are open: the held reply is lost", n.Open)
	}
	heal()
	until(t, w, "the connection is gone", func(c wire.Counts) bool { return c.Open == 0 && c.Replies.Held == 0 })
}

func TestStallHoldsTheCloseAsWell(t *testing.T) {
	addr, closed := echo(t)
	w := wire.New(t, addr)
	c := dial(t, w)
	heal := w.Stall(wire.Requests)
	c.send("last words")
	c.Close()
	until(t, w, "the words are held", func(c wire.Counts) bool { return c.Requests.Held == 1 })
	select {
	case end := <-closed:
		t.Fatalf("the close went through a stalled wire: %v", end.err)
	case <-time.After(20 * time.Millisecond):
	}
	heal()
	<-closed
	if n := w.Count().Requests.Bytes; n != int64(len("last words\n")) {
		t.Errorf("%d bytes reached the server before the close", n)
	}
}

func TestCutResetsBothSides(t *testing.T) {
	addr, closed := echo(t)
	w := wire.New(t, addr)
	for _, stalled := range []bool{false, true} {
		c := dial(t, w)
		c.send("hello")
		c.receive("hello")
		heal := func() {}
		if stalled {
			heal = w.Stall(wire.Both)
			c.send("lost")
			until(t, w, "the request is held", func(c wire.Counts) bool { return c.Requests.Held == 1 })
			c.send("lost, too")
			until(t, w, "the other is held", func(c wire.Counts) bool { return c.Requests.Held == 2 })
		}
		w.Cut()
		c.fails(syscall.ECONNRESET)
		if end := <-closed; !errors.Is(end.err, syscall.ECONNRESET) {
			t.Errorf("stalled %v: the server saw %v, want a reset", stalled, end.err)
		}
		heal()
	}
	c := dial(t, w)
	c.send("again")
	c.receive("again")
	until(t, w, "what the cut has lost is not held", func(c wire.Counts) bool { return c.Requests.Held == 0 })
}

func TestResetOfAClientReachesTheServer(t *testing.T) {
	addr, closed := echo(t)
	w := wire.New(t, addr)
	for _, stalled := range []bool{false, true} {
		c := dial(t, w)
		c.send("hello")
		c.receive("hello")
		heal := func() {}
		if stalled {
			heal = w.Stall(wire.Requests)
			c.send("held")
			until(t, w, "the request is held", func(c wire.Counts) bool { return c.Requests.Held == 1 })
		}
		if err := c.Conn.(*net.TCPConn).SetLinger(0); err != nil {
			t.Fatal(err)
		}
		c.Close()
		if stalled {
			select {
			case end := <-closed:
				t.Fatalf("the reset went through a stalled wire: %v", end.err)
			case <-time.After(20 * time.Millisecond):
			}
		}
		heal()
		if end := <-closed; !errors.Is(end.err, syscall.ECONNRESET) {
			t.Errorf("stalled %v: the server saw %v, want a reset", stalled, end.err)
		}
	}
}

// A server that only talks learns by a reset that nobody is there any more.
func TestServerCannotTalkToNobody(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w := wire.New(t, l.Addr().String())
	c := dial(t, w)
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	c.Close()
	if err := server.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = server.Write(make([]byte, 1024))
	}
	if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("the server could write until %v, want a reset", err)
	}
}

func TestRefuseLeavesOldConnectionsAlone(t *testing.T) {
	addr, _ := echo(t)
	w := wire.New(t, addr)
	old := dial(t, w)
	old.send("hello")
	old.receive("hello")
	w.Refuse()
	w.Refuse()
	if c, err := net.Dial("tcp", w.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("dialled %v with error %v, want to be refused", c, err)
	}
	old.send("still here")
	old.receive("still here")
	for range 2 {
		if err := w.Accept(); err != nil {
			t.Fatal(err)
		}
	}
	c := dial(t, w)
	c.send("new")
	c.receive("new")
}

func TestNoServerIsAReset(t *testing.T) {
	l, err := wire.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	w := wire.New(t, nobody)
	c, err := net.Dial("tcp", w.Addr())
	if err == nil { // the reset may come before the dialler has looked
		defer c.Close()
		_, err = c.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a wire to nobody: %v, want a reset", err)
	}
}

func TestDropSwallowsWhatMatches(t *testing.T) {
	addr, _ := echo(t)
	w := wire.New(t, addr)
	c := dial(t, w)
	for _, way := range []wire.Direction{wire.Requests, wire.Replies} {
		w.Drop(func(d wire.Direction, packet []byte) bool { return d == way && strings.HasPrefix(string(packet), "no") })
		before := w.Count()
		c.send("no, " + way.String())
		until(t, w, "one is dropped", func(c wire.Counts) bool {
			return c.Requests.Dropped+c.Replies.Dropped == before.Requests.Dropped+before.Replies.Dropped+1
		})
		c.send("yes")
		c.receive("yes")
	}
	w.Drop(nil)
	c.send("no longer")
	c.receive("no longer")
	if n := w.Count(); n.Requests.Dropped != 1 || n.Replies.Dropped != 1 {
		t.Errorf("dropped %d and %d, want 1 and 1", n.Requests.Dropped, n.Replies.Dropped)
	}
}

func TestDelayKeepsTheOrder(t *testing.T) {
	addr, _ := echo(t)
	w := wire.New(t, addr)
	c := dial(t, w)
	const d, lines = 20 * time.Millisecond, 50
	w.Delay(d, d)
	start := time.Now()
	for i := range lines {
		c.send(fmt.Sprint(i))
	}
	for i := range lines {
		c.receive(fmt.Sprint(i))
	}
	if took := time.Since(start); took < 2*d {
		t.Errorf("there and back took %v, less than twice the delay of %v", took, d)
	} else if took > lines*d {
		t.Errorf("%d lines took %v: each waited for the one before it", lines, took)
	}
	w.Delay(0, 0)
	c.send("at once")
	c.receive("at once")
}

func TestCloseEndsEverything(t *testing.T) {
	addr, closed := echo(t)
	w := wire.New(t, addr)
	c := dial(t, w)
	w.Stall(wire.Both)
	c.send("stuck")
	until(t, w, "the request is held", func(c wire.Counts) bool { return c.Requests.Held == 1 })
	w.Close()
	if n := w.Count(); n.Open != 0 || n.Requests.Held != 0 {
		t.Errorf("closed, and left %+v", n)
	}
	c.fails(syscall.ECONNRESET)
	<-closed
	if err := w.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed wire accepts again: %v", err)
	}
}
