package redlock_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redlock"
)

// startMasters starts n servers for the test.
func startMasters(t *testing.T, n int, args ...string) []*servertest.Server {
	t.Helper()
	servers := make([]*servertest.Server, n)
	for i := range servers {
		servers[i] = servertest.Redis(t, args...)
	}
	return servers
}

func addrs(servers []*servertest.Server) []string {
	var all []string
	for _, s := range servers {
		all = append(all, s.Addr())
	}
	return all
}

func urlOf(addrs []string) string { return "redlock://" + strings.Join(addrs, ",") }

// open opens masters by URL.
func open(t drivertest.T, url string) *redlock.Driver {
	t.Helper()
	return redistest.Open(t, url).(*redlock.Driver) //nolint:forcetypeassert // the scheme is ours
}

// The drill of the page: three of five masters have restarted, and one of the others is dead for
// good. No majority is left that surely remembers, and the masters wait for the dead one, until it
// is given up. A new server takes its place.
func TestADeadMasterIsGivenUp(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 5, kept...)
	d, wires := wired(t, set, "?max_ttl=1s")
	s := session(t, d, time.Second)
	c := mutex("before", false)
	g, err := acquire(t.Context(), s, c)
	if err != nil {
		t.Fatal(err)
	}
	everywhere(t, set, "before")
	if _, err := s.Release(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	try := func() bool {
		c := mutex("after", false)
		defer func() { _, _ = s.Release(t.Context(), c) }()
		g, err := s.Acquire(t.Context(), c)
		return err == nil && g.Held
	}
	if err := set[4].Kill(); err != nil {
		t.Fatal(err)
	}
	for _, one := range set[:3] {
		if err := one.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		met(t, one, func() { try() })
	}
	until(t, 30*time.Second, "all wait for the dead one", func() bool {
		masters, err := d.Masters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return !slices.ContainsFunc(masters[:3], func(m redlock.Master) bool {
			return m.Err == nil || !strings.Contains(m.Err.Error(), "it has waited for what it may have forgotten, and 1 of 5 masters vote")
		})
	})

	if _, err := d.GiveUp(t.Context(), 0, 4); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "answers") {
		t.Errorf("giving up a master that answers: %v, want it refused", err)
	}
	if _, err := d.GiveUp(t.Context(), 4); err != nil {
		t.Fatalf("giving up the dead master: %v", err)
	}
	for _, one := range set[:4] {
		if !votes(t, one) {
			t.Error("a master has no vote, although nobody has anything to wait for")
		}
	}
	until(t, 30*time.Second, "granted", try)

	next := startMasters(t, 1, kept...)[0]
	wires[4].Redirect(next.Addr())
	wires[4].Cut()
	until(t, 30*time.Second, "a vote of the new server in the place of the dead one", func() bool { try(); return votes(t, next) })
	if record(t, next, "until") == "0" {
		t.Error("the new server voted without a wait")
	}
	until(t, 30*time.Second, "a grant of the former name", func() bool { return again(t, s, "before", g) })
	// Whoever was given up and comes back finds its place taken, and costs the others nothing.
	if err := set[4].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	wires[4].Redirect(set[4].Addr())
	wires[4].Cut()
	until(t, 30*time.Second, "shown as one of another set", func() bool {
		try()
		masters, err := d.Masters(t.Context())
		return err == nil && masters[4].Err != nil && strings.Contains(masters[4].Err.Error(), "which is not the set of the others")
	})
	until(t, 30*time.Second, "granted by the others", try)
}
