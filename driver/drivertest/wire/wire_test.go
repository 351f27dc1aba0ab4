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

	"github.com/interlock-go/interlock/driver/drivertest/wire"
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

// says sends a line and receives it back.
func (c *client) says(line string) {
	c.t.Helper()
	c.send(line)
	c.receive(line)
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

// accepted is a client behind a wire, and the connection that the server has of it.
func accepted(t *testing.T) (*wire.Wire, *client, net.Conn) {
	t.Helper()
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
	t.Cleanup(func() { server.Close() })
	return w, c, server
}

// holds sees that so many requests are held.
func holds(t *testing.T, w *wire.Wire, n int64) {
	t.Helper()
	until(t, w, fmt.Sprintf("%d requests are held", n), func(c wire.Counts) bool { return c.Requests.Held == n })
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
	c.says("hello")
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
		c.says("yes")
	}
	w.Drop(nil)
	c.says("no longer")
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
	} else if took > lines*d && !testing.Short() {
		t.Errorf("%d lines took %v: each waited for the one before it", lines, took)
	}
	w.Delay(0, 0)
	c.says("at once")
}

func TestCloseEndsEverything(t *testing.T) {
	addr, closed := echo(t)
	w := wire.New(t, addr)
	c := dial(t, w)
	w.Stall(wire.Both)
	c.send("stuck")
	holds(t, w, 1)
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
