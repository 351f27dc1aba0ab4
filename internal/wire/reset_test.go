package wire_test

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/wire"
)

func TestCutResetsBothSides(t *testing.T) {
	addr, closed := echo(t)
	w := wire.New(t, addr)
	for _, stalled := range []bool{false, true} {
		c := dial(t, w)
		c.says("hello")
		heal := func() {}
		if stalled {
			heal = w.Stall(wire.Both)
			c.send("lost")
			holds(t, w, 1)
			c.send("lost, too")
			holds(t, w, 2)
		}
		w.Cut()
		c.fails(syscall.ECONNRESET)
		if end := <-closed; !errors.Is(end.err, syscall.ECONNRESET) {
			t.Errorf("stalled %v: the server saw %v, want a reset", stalled, end.err)
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
	for _, stalled := range []bool{false, true} {
		c := dial(t, w)
		c.says("hello")
		heal := func() {}
		if stalled {
			heal = w.Stall(wire.Requests)
			c.send("held")
			holds(t, w, 1)
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
