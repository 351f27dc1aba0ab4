package wire_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver/drivertest/wire"
)

func TestStallHoldsOneWayOrBoth(t *testing.T) {
	for _, way := range []wire.Direction{wire.Requests, wire.Replies, wire.Both} {
		t.Run(way.String(), func(t *testing.T) {
			addr, _ := echo(t)
			w := wire.New(t, addr)
			c := dial(t, w)
			c.says("before")

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
	holds(t, w, 1)
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

// A connection that is silenced brings nothing more, either way, and does not end. The others go
// on, and new ones work.
func TestSilenceTakesOneConnection(t *testing.T) {
	addr, closed := echo(t)
	w := wire.New(t, addr)
	other, c := dial(t, w), dial(t, w)
	other.says("before")
	c.says("before")
	silenced := w.Silence(func(packet []byte) bool { return strings.HasPrefix(string(packet), "die") })
	c.says("die not yet"[4:])
	c.send("die")
	<-silenced
	other.says("die after it")
	dial(t, w).says("new")
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if b, err := c.r.ReadByte(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a silenced connection brought %q, %v", b, err)
	}
	c.Close()
	<-closed
}

// A request that is held is overtaken on another connection, and arrives although its client has
// closed.
func TestHoldHoldsOneConnection(t *testing.T) {
	addr, closed := echo(t)
	w := wire.New(t, addr)
	a, b := dial(t, w), dial(t, w)
	held := make(chan struct{}, 2)
	deliver := w.Hold(func(packet []byte) bool {
		is := strings.HasPrefix(string(packet), "swap")
		if is {
			held <- struct{}{}
		}
		return is
	})
	a.says("load")
	a.send("swap")
	a.Close()
	<-held // or what b says next might be the first
	b.says("other")
	b.says("swap") // it is the first alone
	dial(t, w).says("new")
	select {
	case <-closed:
		t.Fatal("the close went through past what is held")
	case <-time.After(20 * time.Millisecond):
	}
	before := w.Count().Requests.Bytes
	if !deliver() {
		t.Error("deliver says that nothing was held")
	}
	<-closed
	if n := w.Count().Requests.Bytes - before; n != int64(len("swap\n")) {
		t.Errorf("%d bytes arrived", n)
	}
	if deliver = w.Hold(func([]byte) bool { return false }); deliver() {
		t.Error("deliver says that something was held")
	}
	b.says("more")
}
