package servertest_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
)

// ahead is how far the server's wall clock is ahead of ours, by a command that answers with its
// time.
func ahead(t *testing.T, s *servertest.Server, command ...string) time.Duration {
	t.Helper()
	seconds, micros, _ := strings.Cut(said(t, s, command...), "\n")
	sec, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	usec, err := strconv.ParseInt(micros, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Until(time.Unix(sec, usec*1000))
}

func TestStepMovesTheWallClock(t *testing.T) {
	t.Parallel()
	s, err := servertest.Start(t.Context(), servertest.Options{Clock: true, Args: []string{"--appendonly", "yes"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	const tolerance = 10 * time.Second // a machine that is busy, against steps of an hour
	isAhead := func(want time.Duration) {
		t.Helper()
		for _, command := range [][]string{{"TIME"}, {"EVAL", "return redis.call('TIME')", "0"}} {
			if got := ahead(t, s, command...); got < want-tolerance || got > want+tolerance {
				t.Errorf("by %s the server's clock is ahead by %v, want %v", command[0], got, want)
			}
		}
	}
	step := func(d time.Duration) {
		t.Helper()
		if err := s.Step(d); err != nil {
			t.Fatal(err)
		}
	}
	isAhead(0)
	said(t, s, "SET", "short", "x", "PX", "60000")
	said(t, s, "SET", "long", "x", "PX", "86400000")
	step(time.Hour)
	isAhead(time.Hour)
	if got := said(t, s, "GET", "short"); got != "(nil)" {
		t.Errorf("a key of a minute is %q an hour later", got)
	}
	step(-2 * time.Hour)
	isAhead(-time.Hour)
	if ms, err := strconv.Atoi(said(t, s, "PTTL", "long")); err != nil || ms < 86_400_000+3_000_000 {
		t.Errorf("a key of a day has %d ms to live after two steps that are an hour back together (%v)", ms, err)
	}
	// A step while it is down, and one that it comes back with.
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	step(30 * time.Minute)
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	isAhead(-30 * time.Minute)
}

func TestStepNeedsTheClock(t *testing.T) {
	t.Parallel()
	if err := servertest.Redis(t).Step(time.Second); err == nil || !strings.Contains(err.Error(), "Options.Clock") {
		t.Errorf("error %v, want one that names Options.Clock", err)
	}
}
