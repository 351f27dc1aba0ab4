//go:build linux || darwin

package torture

import (
	"fmt"
	"net"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
)

func TestCheckTidy(t *testing.T) {
	for name, c := range map[string]struct {
		left  *leavings
		guilt string
		cases int
	}{
		"as before":    {&leavings{was: traces{5, 7}, left: traces{5, 7}}, "", 1},
		"less":         {&leavings{was: traces{5, 7}, left: traces{4, 6}}, "", 1},
		"a goroutine":  {&leavings{was: traces{5, 7}, left: traces{6, 6}}, "6 goroutines and 6 descriptors", 1},
		"a descriptor": {&leavings{was: traces{5, 7}, left: traces{5, 8}, what: "7 socket"}, "7 socket", 1},
		"killed":       {nil, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			hs := of(0, lease(0, 1, 5, 1))
			hs.lives[0].leavings = c.left
			f := checkTidy(hs)
			if f.cases != c.cases {
				t.Errorf("%d cases, want %d", f.cases, c.cases)
			}
			if c.cases > 0 {
				expect(t, hs, f, c.guilt)
			}
		})
	}
}

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
			is, err := established([]int{l.Addr().(*net.TCPAddr).Port})
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

// A store that keeps more than it had is found out, and one that has a counter for each name is not.
func TestServersAreCounted(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	c := &conductor{Config: Config{Store: "redis://" + s.Addr(), TTL: time.Second, Grace: 100 * time.Millisecond}, id: "counted", servers: &servers{redis: s}}
	closeStore, err := c.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { closeStore() }()
	if err := c.take(t.Context()); err != nil {
		t.Fatal(err)
	}
	var out round
	c.placed = 3
	for _, name := range []string{"a", "b", "c"} {
		if err := c.lockOnce(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.checkServers(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if out.counted != 1 || len(out.kept) > 0 {
		t.Errorf("%d times counted, found %v; want once, and nothing", out.counted, out.kept)
	}
	// A connection of somebody else, and keys: what is there afterwards shows at once when nobody waits for it to go.
	other, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	s.MustDo(t, "MSET", "one", "1", "two", "2", "three", "3", "four", "4")
	is, err := c.servers.count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if allowed := c.was.entries + c.was.each*c.placed; is.entries <= allowed {
		t.Errorf("%d keys are as many as %d that may be there: want the others seen", is.entries, allowed)
	}
	if runtime.GOOS == "linux" && is.connections < 2 {
		t.Errorf("%d connections, want the store's and another one's", is.connections)
	}
}

// A line whose claims are dead goes by itself and is not counted. One in which somebody is alive is, and one that would stay.
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
		servers *servers
		want    int
	}{"one": {&servers{redis: s}, 8}, "masters": {&servers{masters: &masters{nodes: []*servertest.Server{s}}}, 6}} {
		if n, err := c.servers.entries(t.Context()); err != nil || n != c.want {
			t.Errorf("%s: %d entries, %v; want %d", what, n, err, c.want)
		}
	}
}
