//go:build linux || darwin

package torture

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/torture/flawed"
)

// Storms over five masters of which three are killed at once, and there again with their data or with nothing, and over five that
// all start again one after another: two never hold a name, tokens grow, and everything goes on by itself.
func TestStormOverMajorities(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm: make proof")
	}
	length := stormLength(t)
	for _, fault := range []string{FaultMajority, FaultBlank, FaultRolling} {
		t.Run(fault, func(t *testing.T) {
			cfg := Config{Start: Redlock, Faults: []string{fault, FaultLink}, Processes: 6, Goroutines: 4}
			cfg.want = func(t Trial) bool {
				return enough(t) && t.Figure("went on") > 0 && (fault != FaultRolling || t.Figure("faults rolling") >= fiveMasters)
			}
			trial := stormOver(t, cfg, "", max(length, waitingRound))
			withstood(t, trial, nil)
			if trial.Figure("went on") == 0 {
				t.Error("nobody has got in after a fault")
			}
			if n := trial.Figure("faults " + FaultRolling); fault == FaultRolling && n < fiveMasters {
				t.Errorf("%v masters started again, want all five", n)
			}
		})
	}
}

// Who counts a master at once that comes back with nothing lets two hold: such a storm bites.
func TestStormOverABlankMajorityBites(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm: make proof")
	}
	cfg := Config{Start: Redlock, Faults: []string{FaultBlank, FaultLink}, Processes: 6, Goroutines: 4}
	w := twin{name: "whose masters count at once", mustFail: "V3", mayFail: everything}
	if trial := twinOver(t, cfg, flawed.Prefix+"rejoin", w, time.Minute); trial.check("V3").Violations == 0 {
		t.Error("V3 has seen no two holders")
	}
}

// put has a server carry out a command that is written down when it has answered, however it writes down others.
func put(t *testing.T, s *servertest.Server, command ...string) {
	t.Helper()
	for _, c := range [][]string{{"CONFIG", "SET", "appendfsync", "always"}, command} {
		if _, err := s.Do(c...); err != nil {
			t.Fatal(err)
		}
	}
}

// A majority comes back with its data, or with nothing, and those that keep everything keep it either way.
func TestMajorityComesBack(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{FaultMajority, FaultBlank} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			s, err := raise(t.Context(), Redlock, []string{fault})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.close() })
			s.masters.vote = "" // nobody is there who would see to a vote
			for _, n := range s.nodes() {
				put(t, n, "SET", "known", "yes")
			}
			h := &havoc{servers: s, faults: []string{fault}, rand: rand.New(rand.NewPCG(1, 1)), ttl: time.Millisecond, done: map[string]int{}}
			if err := h.strike(t.Context(), fault); err != nil {
				t.Fatal(err)
			}
			for i, n := range s.nodes() {
				want := "yes"
				if fault == FaultBlank && i >= keepers {
					want = "(nil)"
				}
				if v, err := n.Do("GET", "known"); v != want {
					t.Errorf("master %d says %s (%v), want %s", i, v, err, want)
				}
			}
		})
	}
}

// A master that has its vote from before it was started again has none: it is not known by that start.
func TestVoteOfAnotherStart(t *testing.T) {
	t.Parallel()
	s, err := raise(t.Context(), Redlock, []string{FaultRolling})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.close() })
	m := s.masters
	run := func() string {
		info, err := m.nodes[4].Do("INFO", "server")
		if err != nil {
			t.Fatal(err)
		}
		_, run, _ := strings.Cut(info, "run_id:")
		run, _, _ = strings.Cut(run, "\r")
		return run
	}
	vote := func() {
		for _, command := range [][]string{{"SET", redlockVote, "x"}, {"HSET", redlockMember, "run", run()}} {
			put(t, m.nodes[4], command...)
		}
	}
	vote()
	if !m.votesNow(4) {
		t.Error("it has its vote, and is said to have none")
	}
	if err := errors.Join(m.nodes[4].Kill(), m.nodes[4].Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
	if !m.votes(4) || m.votesNow(4) {
		t.Error("it has the vote of its last start, and is said to vote")
	}
	vote()
	if !m.votesNow(4) {
		t.Error("it has its vote again, and is said to have none")
	}
	// Nobody gives another one its vote: that is found, and no failure of the run.
	if _, err := m.nodes[3].Do("DEL", redlockVote); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h := &havoc{servers: s, rand: rand.New(rand.NewPCG(1, 1)), ttl: time.Millisecond, done: map[string]int{}}
	h.use = func(context.Context) { cancel() } // when it has been there again for a while
	m.rolled = 3
	if err := h.strike(ctx, FaultRolling); err != nil || len(h.stuck) != 1 {
		t.Errorf("%v, %d found, want that a master has no vote", err, len(h.stuck))
	}
}
