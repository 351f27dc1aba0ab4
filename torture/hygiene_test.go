//go:build linux || darwin

package torture

import (
	"net"
	"runtime"
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
