package redlock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// Laws that a majority must keep as well as all.
var majorityLaws = []string{
	"Law01_Rule", "Law04_OnceHeld", "Law05_Tokens", "Law06_WakeUp", "Law08_Expiry", "Law13_NothingStays", "Law15_Break",
	"Also_Parallel",
}

// limp tries the laws on five masters after something has happened to them, which says which are there all the same.
func limp(t *testing.T, happens func(t *testing.T, set []*servertest.Server) (there []*servertest.Server)) {
	t.Helper()
	redistest.Try(t, majorityLaws, func(t *testing.T) drivertest.Harness {
		set := startMasters(t, 5, redistest.Durable...)
		d := open(t, urlOf(addrs(set))+patient) // which founds the set
		t.Cleanup(func() { _ = d.Close(context.Background()) })
		there := happens(t, set)
		h := harness(set, there, 4*time.Second)
		if len(there) < len(set) {
			return some{Harness: h}
		}
		return h
	})
}

// some is a harness of masters that are not all there. Whether those that are away forget anything when they restart nobody knows,
// so the driver says that claims don't survive a restart; that they do when the others are restarted is no fault of it.
type some struct {
	*redistest.Harness
	Restart struct{} // hides the method: no law restarts the store
}

func TestConformanceWithTwoOfFiveKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("laws with masters that are killed: make proof")
	}
	limp(t, func(t *testing.T, set []*servertest.Server) []*servertest.Server {
		for _, s := range set[1:3] {
			if err := s.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		return []*servertest.Server{set[0], set[3], set[4]}
	})
}

func TestConformanceWithOneOfFivePaused(t *testing.T) {
	if testing.Short() {
		t.Skip("laws with masters that are paused: make proof")
	}
	limp(t, func(t *testing.T, set []*servertest.Server) []*servertest.Server {
		if err := set[2].Pause(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = set[2].Resume() })
		return slices.Delete(slices.Clone(set), 2, 3)
	})
}

// The one that has forgotten has no vote for a minute, which is longer than any law takes.
func TestConformanceWithOneOfFiveWithoutMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("laws with masters that come back empty: make proof")
	}
	limp(t, func(t *testing.T, set []*servertest.Server) []*servertest.Server {
		set[3].MustDo(t, "FLUSHALL")
		if err := set[3].Restart(context.Background()); err != nil {
			t.Fatal(err)
		}
		return set
	})
}

// One holds, and one that was there before it comes to the masters later. Its claim is the older one, but what is held is
// not given back.
func TestHolderKeepsWhatAnOlderOneWants(t *testing.T) {
	set := startMasters(t, 5)
	late, wires := wired(t, set, "?node_timeout=10s")
	waits := session(t, late, time.Minute)
	holds := session(t, open(t, urlOf(addrs(set))), time.Minute)
	var heals []func()
	for _, w := range wires {
		heals = append(heals, w.Stall(wire.Both))
	}
	old := mutex("older", true)
	type result struct {
		g   driver.Grant
		err error
	}
	got := make(chan result, 1)
	sent := make(chan struct{})
	go func() {
		close(sent)
		g, err := acquire(t.Context(), waits, old)
		got <- result{g, err}
	}()
	<-sent
	<-time.After(50 * time.Millisecond) // it has its ticket by then; if not, nothing is shown, but nothing fails
	occupy(t, "older", set...)
	c := mutex("older", true)
	if g, err := holds.Acquire(t.Context(), c); g.Held || err != nil {
		t.Fatalf("while another program holds: %+v, %v", g, err)
	}
	for _, s := range set {
		s.MustDo(t, "DEL", "older")
	}
	g, err := acquire(t.Context(), holds, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, heal := range heals {
		heal()
	}
	until(t, 20*time.Second, "in line", func() bool {
		line, err := late.Line(t.Context(), "older")
		return err == nil && len(line.Claims) == 2
	})
	for range 50 {
		line, err := late.Line(t.Context(), "older")
		if err != nil {
			t.Fatal(err)
		}
		if len(line.Claims) == 0 || !line.Claims[0].Held || line.Claims[0].PublicID != driver.PublicID(c.ID) {
			t.Fatalf("the holder is not the holder any more: %+v", line.Claims)
		}
	}
	if held, err := holds.Release(t.Context(), c); !held || err != nil {
		t.Errorf("release: %v, %v", held, err)
	}
	r := <-got
	if r.err != nil || r.g.Fence < g.Fence+driver.Stride {
		t.Errorf("the older one: %+v, %v after token %d", r.g, r.err, g.Fence)
	}
}

// A free claim and its release cost one request to each master, sent to all before one has answered.
func TestRoundTrips(t *testing.T) {
	set := startMasters(t, 5)
	b := redistest.NewProxies(t)
	d := openOver(t, b, set)
	defer func() { _ = d.Close(context.Background()) }()
	s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	pair := func() {
		c := mutex("pair", true)
		if g, err := s.Acquire(t.Context(), c); !g.Held || err != nil {
			t.Fatalf("%+v, %v", g, err)
		}
		if _, err := s.Release(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	pair() // the scripts are known from now on, when the last master has answered
	var before []int
	same := 0
	until(t, 30*time.Second, "quiet", func() bool {
		now := b.Calls()
		if same++; !slices.Equal(now, before) {
			before, same = now, 0
		}
		return same == 10
	})
	for range 10 {
		pair()
	}
	until(t, 30*time.Second, "20 requests at each master", func() bool {
		for i, n := range b.Calls() {
			if n-before[i] < 20 {
				return false
			}
		}
		return true
	})
	for i, n := range b.Calls() {
		if n-before[i] != 20 {
			t.Errorf("master %d: %d requests for ten pairs, want 20", i+1, n-before[i])
		}
	}
}
