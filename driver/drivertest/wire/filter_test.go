package wire_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
)

// redis is a client of a real server behind a wire, by RESP3 as pushes need it.
type redis struct {
	*client
}

func connect(t *testing.T, w *wire.Wire) redis {
	t.Helper()
	c := redis{dial(t, w)}
	c.send("HELLO 3\r")
	for !strings.Contains(c.line(), "modules") {
	}
	c.is("*0")
	return c
}

func (c redis) line() string {
	c.t.Helper()
	line, err := c.r.ReadString('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.TrimSuffix(line, "\r\n")
}

func (c redis) is(want ...string) {
	c.t.Helper()
	for _, w := range want {
		if got := c.line(); got != w {
			c.t.Fatalf("received %q, want %q", got, w)
		}
	}
}

func TestFilterTakesSinglePushes(t *testing.T) {
	s := servertest.Redis(t)
	w := wire.New(t, s.Addr())
	c := connect(t, w)
	w.Filter(wire.Replies, func(frame []byte) bool {
		return frame[0] != '>' || !strings.Contains(string(frame), "secret")
	})
	c.send("SUBSCRIBE news\r")
	c.is(">3", "$9", "subscribe", "$4", "news", ":1")
	for _, message := range []string{"secret 1", "open", "secret 2"} {
		if got, err := s.Do("PUBLISH", "news", message); got != "1" || err != nil {
			t.Fatalf("PUBLISH: %q, %v", got, err)
		}
	}
	c.send("ECHO secret\r")
	c.is(">3", "$7", "message", "$4", "news", "$4", "open", "$6", "secret")
	if got := w.Count().Replies.Dropped; got < 1 || got > 2 { // the kernel may have joined the two
		t.Errorf("%d packets were touched, want those of two pushes", got)
	}

	w.Filter(wire.Replies, nil)
	if got, err := s.Do("PUBLISH", "news", "secret 3"); got != "1" || err != nil {
		t.Fatalf("PUBLISH: %q, %v", got, err)
	}
	c.is(">3", "$7", "message", "$4", "news", "$8", "secret 3")
}

func TestFilterTakesSingleRequests(t *testing.T) {
	s := servertest.Redis(t)
	w := wire.New(t, s.Addr())
	c := connect(t, w)
	w.Filter(wire.Requests, func(frame []byte) bool { return !strings.Contains(string(frame), "INCR") })
	c.send("*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n*2\r\n$4\r\nECHO\r\n$1\r\nx\r\n*2\r\n$4\r\nINCR\r\n$1\r\nn\r")
	c.is("$1", "x")
	w.Filter(wire.Both, nil)
	c.send("INCR n\r")
	c.is(":1")
}

// A frame of which some has passed passes whole, and one of which the rest is missing is held.
func TestFilterKnowsFramesThatItHasNotSeenBegin(t *testing.T) {
	w, c, server := accepted(t)
	say := func(s string) {
		t.Helper()
		if _, err := io.WriteString(server, s); err != nil {
			t.Fatal(err)
		}
	}
	say("*2\r\n$3\r\none\r\n$3\r\nt")
	for _, want := range []string{"*2\r", "$3\r", "one\r", "$3\r"} {
		c.receive(want)
	}
	w.Filter(wire.Replies, func(frame []byte) bool { return false })
	say("wo\r\n+gone\r\n%1\r\n+half")
	c.receive("two\r")
	w.Filter(wire.Replies, nil)
	say("\r\n+whole\r\n")
	for _, want := range []string{"%1\r", "+half\r", "+whole\r"} {
		c.receive(want)
	}
}

func TestFilterPassesWhatIsNotRESP(t *testing.T) {
	addr, _ := echo(t)
	w := wire.New(t, addr)
	w.Filter(wire.Replies, func(frame []byte) bool { return string(frame) == "+\n" })
	c := dial(t, w)
	c.says("+")
	c.says("*not a number")
	c.says("+no frame any more")

	c = dial(t, w)
	const size = 200 << 10 // and no end of a line
	sent := make(chan error)
	go func() {
		_, err := c.Write(make([]byte, size))
		sent <- err
	}()
	if _, err := io.ReadFull(c.r, make([]byte, size)); err != nil {
		t.Error(err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// What a client of a server's that is paused and resumed sees, a client behind a stalled wire sees,
// too.
func TestStalledRedisAnswersInOrder(t *testing.T) {
	s := servertest.Redis(t)
	w := wire.New(t, s.Addr())
	c := connect(t, w)
	heal := w.Stall(wire.Replies)
	c.send("INCR n\r")
	c.send("INCR n\r")
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if got, err := s.Do("GET", "n"); got == "2" {
			break
		} else if time.Now().After(end) {
			t.Fatalf("the requests have not passed: %q, %v", got, err)
		}
	}
	heal()
	c.is(":1", ":2")
}
