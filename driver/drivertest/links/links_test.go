package links_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/driver/drivertest/links"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/memlock"
	_ "github.com/interlock-go/interlock/redislock"
)

// harness is the one of the package's documentation, for a store that tells.
type harness struct {
	*links.Links
	server, prefix string
}

func (h *harness) Driver(t drivertest.T) driver.Driver {
	w := h.Lay(t, h.server)
	d, err := driver.OpenURL(t.(*testing.T).Context(), "redis://"+w.Addr())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	h.Belong(d, w)
	return d
}

func (h *harness) Prefix() string     { return h.prefix }
func (h *harness) TTL() time.Duration { return time.Second }
func (h *harness) Budget() drivertest.Budget {
	return drivertest.Budget{Acquire: 1, Release: 1, Handoff: 1}
}

// A harness that has nothing but its links can try the laws that ask for them, and none of them
// lacks anything.
func TestLinksAreWhatTheLawsAskFor(t *testing.T) {
	server := servertest.Redis(t, redistest.Durable...)
	for _, law := range drivertest.Laws() {
		if slices.Contains([]string{"Law02_Idempotence", "Law10_Quiet", "Law13_NothingStays", "Law14_LostNotice", "Also_Contexts"}, law.Name) {
			t.Run(law.Name, func(t *testing.T) {
				l := links.New()
				l.RESP, l.Request, l.Notice = true, use, message
				law.Try(t, &harness{Links: l, server: server.Addr(), prefix: "suite-" + driver.NewID() + "/"})
			})
		}
	}
}

func message(reply []byte) bool {
	return bytes.Contains(reply[:min(len(reply), 20)], []byte("message"))
}
func use(request []byte) bool { return !redistest.Overhead(request) }

// Where a packet carries several requests each of them counts, and a harness may have the wires
// themselves.
func TestLinksCountWhatAPacketCarries(t *testing.T) {
	l := links.New()
	l.Requests = func(packet []byte) int { return bytes.Count(packet, []byte("?")) }
	ours, others := memlock.New(), memlock.New()
	us, more := l.Lay(t, echo(t)), l.Lay(t, echo(t))
	l.Belong(ours, us)
	l.Belong(ours, more)
	c := dial(t, us)
	c.says("one? two? three", "one? two? three")
	c.says("none", "none")
	if n := l.Calls(ours); n != 2 {
		t.Errorf("counted %d calls, want 2", n)
	}
	if got := l.Wires(ours); !slices.Equal(got, []*wire.Wire{us, more}) || len(l.Wires(others)) != 0 {
		t.Errorf("%d wires belong to a driver of two, %d to another one", len(got), len(l.Wires(others)))
	}
}

// What befalls one driver befalls no other, over a protocol of which nothing is known.
func TestLinksAreOneDriversEach(t *testing.T) {
	l := links.New()
	l.Notice = func(packet []byte) bool { return bytes.HasPrefix(packet, []byte("news")) }
	server := echo(t)
	ours, others := memlock.New(), memlock.New()
	us, them := l.Lay(t, server), l.Lay(t, server)
	l.Belong(ours, us)
	l.Belong(others, them)
	a, b := dial(t, us), dial(t, them)

	a.says("one", "one")
	b.says("one", "one")
	b.says("two", "two")
	if n, m := l.Calls(ours), l.Calls(others); n != 1 || m != 2 {
		t.Errorf("counted %d and %d calls, want 1 and 2", n, m)
	}

	hear := l.Deafen(t, ours)
	again := l.Deafen(t, ours)
	hear()
	hear() // again: nothing
	a.says("news 1", "")
	replies := func() wire.Flow { return us.Count().Replies }
	until(t, "the notice comes or is lost", func() bool { return replies().Dropped+replies().Packets == 2 })
	if n := replies().Dropped; n != 1 {
		t.Fatalf("%d notices are lost, want 1", n)
	}
	a.says("three", "three") // what is no notice passes
	b.says("news 1", "news 1")
	again()
	a.says("news 2", "news 2")

	heal := l.Stall(t, ours, drivertest.Replies)
	a.says("four", "")
	until(t, "the reply is held", func() bool { return replies().Held == 1 })
	b.says("four", "four")
	heal()
	a.says("", "four")

	l.Kill(t, ours)
	b.says("five", "five")
	if _, err := a.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after Kill: %v, want a connection that is over", err)
	}
	if c, err := net.Dial("tcp", us.Addr()); err == nil {
		c.Close()
		t.Error("after Kill a connection is accepted")
	}
}

// echo answers what it reads with itself.
func echo(t *testing.T) (addr string) {
	t.Helper()
	s, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	go func() {
		for {
			c, err := s.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); c.Close() }()
		}
	}()
	return s.Addr().String()
}

type client struct {
	net.Conn
	t *testing.T
}

func dial(t *testing.T, w *wire.Wire) client {
	t.Helper()
	c, err := net.Dial("tcp", w.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return client{c, t}
}

// says sends a request and insists on the reply; either may be left out.
func (c client) says(request, reply string) {
	c.t.Helper()
	if _, err := io.WriteString(c, request); err != nil {
		c.t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	b := make([]byte, len(reply))
	n, err := io.ReadFull(c, b)
	if got := string(b[:n]); got != reply {
		c.t.Fatalf("%q was answered with %q, %v, want %q", request, got, err, reply)
	}
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not after 30s: %s", what)
		}
	}
}
