//go:build linux || darwin

package servers

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/torture/internal/history"
)

// However often masters are to forget, no more than two do so in the time in which they have no
// vote, and the two that keep everything are never among them.
func TestForgetLeavesAMajority(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), Redlock, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	s.SetMaxTTL(time.Hour)
	starts := func() (runs []string) {
		for _, n := range s.kind.nodes() {
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
	inj := s.Injector([]string{FaultForget}, 1, time.Millisecond)
	for range 6 {
		if err := inj.inject(t.Context(), FaultForget); err != nil {
			t.Fatal(err)
		}
	}
	var forgot []int
	for i, run := range starts() {
		if run != before[i] {
			forgot = append(forgot, i)
		}
	}
	if len(forgot) != most || forgot[0] < Keepers {
		t.Errorf("masters %v have forgotten, want %d of those from %d on", forgot, most, Keepers)
	}
	if n := inj.Count[FaultForget]; n < 1 || n > most {
		t.Errorf("%d times counted, want those that were something: 1 or 2", n)
	}
}

// A blank master has nothing, and one with an old memory what it had when the snapshot was taken.
func TestForgetForgets(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), Redlock, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	s.kind.(*masters).maxTTL, s.kind.(*masters).vote = -time.Hour, "" // all vote again at once
	inj := s.Injector([]string{FaultForget}, 2, time.Millisecond)
	blank, old := 0, 0
	for blank == 0 || old == 0 {
		if inj.Count[FaultForget] == 100 {
			t.Fatalf("of 100 faults %d left a master blank and %d with an old memory, want some of both", blank, old)
		}
		for _, n := range s.kind.nodes() {
			if _, err := n.Do("SET", "known", "yes"); err != nil {
				t.Fatal(err)
			}
		}
		inj.Faults = nil
		if err := inj.inject(t.Context(), FaultForget); err != nil {
			t.Fatal(err)
		}
		for i, n := range s.kind.nodes() {
			v, err := n.Do("GET", "known")
			if err != nil {
				t.Fatal(err)
			}
			said := slices.ContainsFunc(inj.Faults, func(f history.Fault) bool {
				return strings.Contains(f.What, n.Addr()) && strings.Contains(f.What, "forgotten everything")
			})
			if (v == "(nil)") != said {
				t.Errorf("master %d says %s, and it is told that it has forgotten: %v", i, v, said)
			}
			if said {
				blank++
			} else if s.kind.(*masters).forgot[i] != 0 && len(inj.Faults) > 0 {
				old++
			}
		}
	}
}
