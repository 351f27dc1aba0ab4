//go:build linux || darwin

package torture

import (
	"bufio"
	"fmt"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/interlock-go/interlock/torture/internal/servers"
)

// A store that keeps more than it had is found out, and one that has a counter for each name is
// not.
func TestServersAreCounted(t *testing.T) {
	t.Parallel()
	s, err := servers.Start(t.Context(), OneRedis, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c := &conductor{Config: Config{Store: s.URL(), TTL: time.Second, Grace: 100 * time.Millisecond}, id: "counted", servers: s}
	closeStore, err := c.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { closeStore() }()
	if err := countServers(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	var out round
	c.placed = 3
	for _, name := range []string{"a", "b", "c"} {
		if err := lockOnce(t.Context(), c, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := recountServers(t.Context(), c, &out); err != nil {
		t.Fatal(err)
	}
	if out.counted != 1 || len(out.kept) > 0 {
		t.Errorf("%d times counted, found %v; want once, and nothing", out.counted, out.kept)
	}
	// A connection of somebody else, and keys: what is there afterwards shows at once when nobody
	// waits for it to go.
	other, err := net.Dial("tcp", s.Proxied()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	fmt.Fprint(other, "MSET one 1 two 2 three 3 four 4\r\n")
	if answer, err := bufio.NewReader(other).ReadString('\n'); answer != "+OK\r\n" {
		t.Fatal(answer, err)
	}
	is, err := c.servers.Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if allowed := c.was.Entries + c.was.each*c.placed; is.Entries <= allowed {
		t.Errorf("%d keys are as many as %d that may be there: want the others seen", is.Entries, allowed)
	}
	if runtime.GOOS == "linux" && is.Connections < 2 {
		t.Errorf("%d connections, want the store's and another one's", is.Connections)
	}
}
