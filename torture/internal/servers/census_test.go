//go:build linux || darwin

package servers

import (
	"fmt"
	"net"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
)

// Connections are counted at the servers' end, also such of which the client has hung up.
func TestEstablished(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // where nobody counts them
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	want := func(n int, when string) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
			is, err := established([]string{l.Addr().String()})
			if err != nil {
				t.Fatal(err)
			}
			if is == n {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d connections, want %d", when, is, n)
			}
		}
	}
	want(0, "at first")
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	want(1, "dialled")
	client.Close()
	want(1, "hung up by the client")
	server.Close()
	want(0, "closed")
}

// A line whose claims are dead goes by itself and is not counted. One in which somebody is alive
// is, and one that would stay.
func TestDeadLinesAreNotCounted(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	now := time.Now()
	record := func(stop time.Time) string {
		return fmt.Sprintf("w 300 %d %d il:push:x vote {}", stop.UnixMilli(), now.UnixMilli())
	}
	line := func(name string, stays bool, records ...string) {
		t.Helper()
		for i, r := range records {
			s.MustDo(t, "ZADD", "il:{"+name+"}:qline:"+name, strconv.Itoa(i), strconv.Itoa(i))
			s.MustDo(t, "HSET", "il:{"+name+"}:qclaims:"+name, strconv.Itoa(i), r)
		}
		if !stays {
			s.MustDo(t, "PEXPIRE", "il:{"+name+"}:qclaims:"+name, "3600000")
		}
	}
	past, later := now.Add(-time.Minute), now.Add(time.Hour)
	line("dead", false, record(past), record(past))
	line("alive", false, record(past), record(later))
	line("stays", true, record(past))
	line("else", false, "4 0 0 0")
	for what, c := range map[string]struct {
		kind kind
		want int
	}{"one": {&oneRedis{server: s}, 8}, "masters": {&masters{all: []*servertest.Server{s}}, 6}} {
		if n, err := c.kind.entries(t.Context()); err != nil || n != c.want {
			t.Errorf("%s: %d entries, %v; want %d", what, n, err, c.want)
		}
	}
}
