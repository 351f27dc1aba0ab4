//go:build linux || darwin

package torture

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// However often masters are to forget, no more than two do so in the time in which they have no vote, and the two that
// keep everything are never among them.
func TestForgetLeavesAMajority(t *testing.T) {
	t.Parallel()
	s, err := raise(t.Context(), Redlock, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.close() })
	s.masters.bear(time.Hour)
	starts := func() (runs []string) {
		for _, n := range s.nodes() {
			info, err := n.Do("INFO", "server")
			if err != nil {
				t.Fatal(err)
			}
			_, run, _ := strings.Cut(info, "run_id:")
			run, _, _ = strings.Cut(run, "\r")
			runs = append(runs, run)
		}
		return runs
	}
	before := starts()
	h := &havoc{servers: s, faults: []string{FaultForget}, rand: rand.New(rand.NewPCG(1, 1)), ttl: time.Millisecond, done: map[string]int{}}
	for range 6 {
		if err := h.strike(t.Context(), FaultForget); err != nil {
			t.Fatal(err)
		}
	}
	var forgot []int
	for i, run := range starts() {
		if run != before[i] {
			forgot = append(forgot, i)
		}
	}
	if len(forgot) != most || forgot[0] < keepers {
		t.Errorf("masters %v have forgotten, want %d of those from %d on", forgot, most, keepers)
	}
	if n := h.done[FaultForget]; n < 1 || n > most {
		t.Errorf("%d times counted, want those that were something: 1 or 2", n)
	}
}

// A blank master has nothing, and one with an old memory what it had when the snapshot was taken.
func TestForgetForgets(t *testing.T) {
	t.Parallel()
	s, err := raise(t.Context(), Redlock, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.close() })
	s.masters.maxTTL, s.masters.vote = -time.Hour, "" // all vote again at once
	h := &havoc{servers: s, faults: []string{FaultForget}, rand: rand.New(rand.NewPCG(2, 2)), ttl: time.Millisecond, done: map[string]int{}}
	blank, old := 0, 0
	for blank == 0 || old == 0 {
		if h.done[FaultForget] == 100 {
			t.Fatalf("of 100 faults %d left a master blank and %d with an old memory, want some of both", blank, old)
		}
		for _, n := range s.nodes() {
			if _, err := n.Do("SET", "known", "yes"); err != nil {
				t.Fatal(err)
			}
		}
		h.history = nil
		if err := h.strike(t.Context(), FaultForget); err != nil {
			t.Fatal(err)
		}
		for i, n := range s.nodes() {
			v, err := n.Do("GET", "known")
			if err != nil {
				t.Fatal(err)
			}
			said := slices.ContainsFunc(h.history, func(f fault) bool {
				return strings.Contains(f.what, n.Addr()) && strings.Contains(f.what, "forgotten everything")
			})
			if (v == "(nil)") != said {
				t.Errorf("master %d says %s, and it is told that it has forgotten: %v", i, v, said)
			}
			if said {
				blank++
			} else if s.masters.forgot[i] != 0 && len(h.history) > 0 {
				old++
			}
		}
	}
}

// Links are damaged to all masters, to a minority or a majority of them, and never to a minority when the worker is to be
// cut off.
func TestDrawCables(t *testing.T) {
	c, err := lay(t.Context(), []string{"a:1", "b:2", "c:3", "d:4", "e:5"}, 1, 0, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.remove)
	r := rand.New(rand.NewPCG(3, 3))
	for off, want := range map[bool][]int{false: {1, 2, 3, 5}, true: {3, 5}} {
		drawn := map[int]bool{}
		for range 200 {
			hit, where := c.draw(0, r, off)
			drawn[len(hit)] = true
			if n := strings.Count(where, ":"); n != len(hit) && (n != 0 || len(hit) != 5) {
				t.Fatalf("%d cables, and told of are %q", len(hit), where)
			}
		}
		var got []int
		for n := range drawn {
			got = append(got, n)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("to be cut off: %v; struck were %v cables, want %v", off, got, want)
		}
	}
	if u := c.url("redlock://a:1,b:2,c:3,d:4,e:5?max_ttl=1s", 0); strings.Contains(u, "a:1") || strings.Count(u, "127.0.0.1:") != 5 {
		t.Errorf("the URL over cables is %s", u)
	}
}
