//go:build linux || darwin

package servers

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
)

// put has a server carry out a command that is written down when it has answered, however it writes
// down others.
func put(t *testing.T, s *servertest.Server, command ...string) {
	t.Helper()
	for _, c := range [][]string{{"CONFIG", "SET", "appendfsync", "always"}, command} {
		if _, err := s.Do(c...); err != nil {
			t.Fatal(err)
		}
	}
}

// A majority comes back with its data, or with nothing, and those that keep everything keep it
// either way.
func TestMajorityComesBack(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{FaultMajority, FaultBlank} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			s, err := Start(t.Context(), Redlock, []string{fault})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			s.kind.(*masters).vote = "" // nobody is there who would see to a vote
			for _, n := range s.kind.nodes() {
				put(t, n, "SET", "known", "yes")
			}
			inj := s.Injector([]string{fault}, 1, time.Millisecond)
			if err := inj.inject(t.Context(), fault); err != nil {
				t.Fatal(err)
			}
			for i, n := range s.kind.nodes() {
				want := "yes"
				if fault == FaultBlank && i >= Keepers {
					want = "(nil)"
				}
				if v, err := n.Do("GET", "known"); v != want {
					t.Errorf("master %d says %s (%v), want %s", i, v, err, want)
				}
			}
		})
	}
}

// A master that has its vote from before it was started again has none: it is not known by that
// start.
func TestVoteOfAnotherStart(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), Redlock, []string{FaultRolling})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	m := s.kind.(*masters)
	run := func() string {
		info, err := m.all[4].Do("INFO", "server")
		if err != nil {
			t.Fatal(err)
		}
		_, run, _ := strings.Cut(info, "run_id:")
		run, _, _ = strings.Cut(run, "\r")
		return run
	}
	vote := func() {
		for _, command := range [][]string{{"SET", redlockVote, "x"}, {"HSET", redlockMember, "run", run()}} {
			put(t, m.all[4], command...)
		}
	}
	vote()
	if !m.votesNow(4) {
		t.Error("it has its vote, and is said to have none")
	}
	if err := errors.Join(m.all[4].Kill(), m.all[4].Restart(t.Context())); err != nil {
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
	if _, err := m.all[3].Do("DEL", redlockVote); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	inj := s.Injector(nil, 1, time.Millisecond)
	inj.Use = func(context.Context) { cancel() } // when it has been there again for a while
	m.rolled = 3
	if err := inj.inject(ctx, FaultRolling); err != nil || len(inj.Stuck) != 1 {
		t.Errorf("%v, %d found, want that a master has no vote", err, len(inj.Stuck))
	}
}
