package wire_test

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver/drivertest/wire"
)

// held is a client that has spoken with the server, and whose later lines, if any, a stall holds.
func held(t *testing.T, w *wire.Wire, way wire.Direction, lines ...string) (c *client, heal func()) {
	t.Helper()
	c = dial(t, w)
	c.says("hello")
	if lines == nil {
		return c, func() {}
	}
	heal = w.Stall(way)
	for i, line := range lines {
		c.send(line)
		holds(t, w, int64(i+1))
	}
	return c, heal
}

func TestCutResetsBothSides(t *testing.T) {
	addr, closed := echo(t)
	w := wire.New(t, addr)
	for _, lost := range [][]string{nil, {"one", "and another"}} {
		c, heal := held(t, w, wire.Both, lost...)
		w.Cut()
		c.fails(syscall.ECONNRESET)
		if end := <-closed; !errors.Is(end.err, syscall.ECONNRESET) {
			t.Errorf("%q held: the server saw %v, want a reset", lost, end.err)
		}
		heal()
	}
	c := dial(t, w)
	c.says("again")
	holds(t, w, 0)
}

func TestResetOfAClientReachesTheServer(t *testing.T) {
	addr, closed := echo(t)
	w := wire.New(t, addr)
	for _, lines := range [][]string{nil, {"held"}} {
		c, heal := held(t, w, wire.Requests, lines...)
		if err := c.Conn.(*net.TCPConn).SetLinger(0); err != nil {
			t.Fatal(err)
		}
		c.Close()
		if lines != nil {
			select {
			case end := <-closed:
				t.Fatalf("the reset went through a stalled wire: %v", end.err)
			case <-time.After(20 * time.Millisecond):
			}
		}
		heal()
		if end := <-closed; !errors.Is(end.err, syscall.ECONNRESET) {
			t.Errorf("%q held: the server saw %v, want a reset", lines, end.err)
		}
	}
}

// A server that only talks learns by a reset that nobody is there any more.
func TestServerCannotTalkToNobody(t *testing.T) {
	_, c, server := accepted(t)
	c.Close()
	err := server.SetDeadline(time.Now().Add(10 * time.Second))
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
	old.says("hello")
	w.Refuse()
	w.Refuse()
	if c, err := net.Dial("tcp", w.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("dialled %v with error %v, want to be refused", c, err)
	}
	old.says("still here")
	for range 2 {
		if err := w.Accept(); err != nil {
			t.Fatal(err)
		}
	}
	c := dial(t, w)
	c.says("new")
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
