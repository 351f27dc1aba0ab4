//go:build linux || darwin

package proxies

import (
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/torture/internal/servers"
)

// Links are damaged to all masters, to a minority or a majority of them, and never to a minority
// when the worker is to be cut off.
func TestDrawLinks(t *testing.T) {
	c, err := New(t.Context(), []string{"a:1", "b:2", "c:3", "d:4", "e:5"}, 1, 0, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	r := rand.New(rand.NewPCG(3, 3))
	for off, want := range map[bool][]int{false: {1, 2, 3, 5}, true: {3, 5}} {
		drawn := map[int]bool{}
		for range 200 {
			hit, where := c.draw(0, r, off)
			drawn[len(hit)] = true
			if n := strings.Count(where, ":"); n != len(hit) && (n != 0 || len(hit) != 5) {
				t.Fatalf("%d links, and told of are %q", len(hit), where)
			}
		}
		var got []int
		for n := range drawn {
			got = append(got, n)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("to be cut off: %v; damaged were %v links, want %v", off, got, want)
		}
	}
	if u := c.URL("redlock://a:1,b:2,c:3,d:4,e:5?max_ttl=1s", 0); strings.Contains(u, "a:1") || strings.Count(u, "127.0.0.1:") != 5 {
		t.Errorf("the URL over proxies is %s", u)
	}
}

// A worker that is to be cut off from servers reaches them over proxies: behind a pooler that is
// the way to the pooler.
func TestProxiedBehindAPooler(t *testing.T) {
	t.Parallel()
	s, err := servers.Start(t.Context(), servers.PostgresPooler, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	links, err := New(t.Context(), s.Proxied(), 1, 0, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(links.Close)
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	if at := links.URL(u.String(), 0); strings.Contains(at, u.Host) {
		t.Errorf("a worker with a proxy goes to %s, past it", at)
	}
}
