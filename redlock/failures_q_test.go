package redlock_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redlock"
)

// wired opens the masters over a wire each.
func wired(t *testing.T, set []*servertest.Server, parameters string) (*redlock.Driver, []*wire.Wire) {
	t.Helper()
	var wires []*wire.Wire
	var all []string
	for _, s := range set {
		w := wire.New(t, s.Addr())
		wires, all = append(wires, w), append(all, w.Addr())
	}
	return open(t, urlOf(all)+parameters), wires
}

// occupy has another program hold the name on some masters.
func occupy(t *testing.T, name string, set ...*servertest.Server) {
	t.Helper()
	for _, s := range set {
		s.MustDo(t, "SET", name, "theirs", "PX", "600000")
	}
}

// ours reports whether a claim of ours has the master.
func ours(t *testing.T, s *servertest.Server, name string) bool {
	t.Helper()
	return strings.HasPrefix(s.MustDo(t, "GET", name), "ilq1:")
}

// everywhere waits until a claim of ours that has a majority has all masters.
func everywhere(t *testing.T, set []*servertest.Server, name string) {
	t.Helper()
	until(t, 30*time.Second, "taken everywhere", func() bool {
		return !slices.ContainsFunc(set, func(s *servertest.Server) bool { return !ours(t, s, name) })
	})
}

// Two of five masters' clocks go an hour forth and back. Exclusion may suffer from that, the order of tokens does not: what
// was granted later has the larger token, by whatever majority.
func TestClocks(t *testing.T) {
	if testing.Short() {
		t.Skip("contests under clocks that differ: make proof")
	}
	var set []*servertest.Server
	for range 5 {
		s, err := servertest.Start(t.Context(), servertest.Options{Clock: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		set = append(set, s)
	}
	d := open(t, urlOf(addrs(set)))
	s := session(t, d, 2*time.Second)
	last := uint64(0)
	for round := range 100 {
		for i, by := range []time.Duration{time.Hour, -time.Hour} {
			if round%4 >= 2 {
				by = -by // and back again
			}
			if round%2 == 0 {
				if err := set[(round/4+i)%5].Step(by); err != nil {
					t.Fatal(err)
				}
			}
		}
		out := set[round%5] // every majority has its turn
		occupy(t, "clocks", out)
		c := mutex("clocks", true)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		g, err := acquire(ctx, s, c)
		cancel()
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if g.Fence < last+driver.Stride {
			t.Fatalf("round %d: token %d after %d", round, g.Fence, last)
		}
		last = g.Fence
		if _, err := s.Release(t.Context(), c); err != nil {
			t.Fatalf("round %d: release: %v", round, err)
		}
		out.MustDo(t, "DEL", "clocks")
	}
}

// A claim gets one master, waits longer than its TTL without a renewal, and then gets another one. The first is over by then
// and belongs to somebody else, so that the two are no majority.
func TestVotesGrowOld(t *testing.T) {
	set := startMasters(t, 3)
	d := open(t, urlOf(addrs(set)))
	s := session(t, d, time.Second)
	for _, server := range set { // all answer the same counter, whoever asks when
		server.MustDo(t, "SET", "il:{old}:qfence:old", strconv.FormatInt(time.Now().Add(time.Hour).UnixMicro()/64*64, 10)[:9]+"0000000")
	}
	occupy(t, "old", set[1:]...)
	c := mutex("old", true)
	if g, err := s.Acquire(t.Context(), c); g.Held || err != nil {
		t.Fatalf("with one master of three: %+v, %v", g, err)
	}
	until(t, 30*time.Second, "over", func() bool { return !ours(t, set[0], "old") })
	occupy(t, "old", set[0])
	set[1].MustDo(t, "DEL", "old")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	taken := make(chan bool, 1)
	go func() {
		for ctx.Err() == nil {
			if answer, err := set[1].Do("GET", "old"); err == nil && strings.HasPrefix(answer, "ilq1:") {
				taken <- true
				return
			}
		}
		taken <- false
	}()
	for {
		g, err := s.Wait(ctx, c)
		if g.Held {
			t.Fatalf("held with token %d, by a master that gave itself to somebody else meanwhile", g.Fence)
		}
		if err != nil {
			break
		}
	}
	if !<-taken {
		t.Error("the master that was freed was not taken: nothing was shown")
	}
}

// A try that gets no majority leaves nothing behind, also where it was granted and the answer did not come.
func TestMinorityIsGivenBack(t *testing.T) {
	set := startMasters(t, 5)
	d, wires := wired(t, set, endless) // a majority denies it, so that nobody waits for the master that is mute
	s := session(t, d, endlessTTL)
	occupy(t, "minority", set[:3]...)
	heal := wires[3].Stall(wire.Replies)
	defer heal()
	c := mutex("minority", false)
	if g, err := s.Acquire(t.Context(), c); g.Held || err != nil { // after an error it would stand there until its Release
		t.Fatalf("held by two of five: %+v, %v", g, err)
	}
	heal()
	freeForGood(t, "minority", set[3:]...)
}

// One master gets to see the request only after the lock was released. It must not stand there then until its TTL is over.
func TestStraggler(t *testing.T) {
	set := startMasters(t, 5)
	d, wires := wired(t, set, "?node_timeout=500ms")
	s := session(t, d, time.Minute)
	heal := wires[4].Stall(wire.Both)
	c := mutex("straggler", true)
	if g, err := s.Acquire(t.Context(), c); !g.Held || err != nil {
		t.Fatalf("four of five masters: %+v, %v", g, err)
	}
	if held, err := s.Release(t.Context(), c); !held || err != nil {
		t.Fatalf("release: %v, %v", held, err)
	}
	heal()
	// It comes and goes, or never comes.
	freeForGood(t, "straggler", set[4])
}

// freeForGood waits until the masters are free of ours, and stay so.
func freeForGood(t *testing.T, name string, set ...*servertest.Server) {
	t.Helper()
	free := 0
	until(t, 20*time.Second, "free of "+name+" for good", func() bool {
		free++
		for _, s := range set {
			if ours(t, s, name) {
				free = 0
			}
		}
		return free == 50
	})
}

// Two masters do not answer. All are asked at once, so that nobody waits for these.
func TestNobodyWaitsForWhoDoesNotAnswer(t *testing.T) {
	set := startMasters(t, 5)
	d := open(t, urlOf(addrs(set))+"?node_timeout=5s")
	s := session(t, d, time.Minute)
	for _, server := range set[:2] {
		if err := server.Pause(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = server.Resume() }()
	}
	began := time.Now()
	for range 3 {
		c := mutex("quick", true)
		if g, err := s.Acquire(t.Context(), c); !g.Held || err != nil {
			t.Fatalf("three of five masters: %+v, %v", g, err)
		}
		if _, err := s.Renew(t.Context()); err != nil {
			t.Fatalf("renew: %v", err)
		}
		if held, err := s.Release(t.Context(), c); !held || err != nil {
			t.Fatalf("release: %v, %v", held, err)
		}
		if took := time.Since(began); took > 5*time.Second && !testing.Short() {
			t.Fatalf("it took %v, longer than the time that a single master has for its answer", took)
		}
	}
}

// One master's counter is ahead of the others'. The token of a grant there is stored at a majority before it is told, so that
// whoever is granted by the others next has a larger one.
func TestRaise(t *testing.T) {
	set := startMasters(t, 3)
	d := open(t, urlOf(addrs(set)))
	s := session(t, d, 5*time.Second)
	ahead := time.Now().Add(time.Hour).UnixMicro() / 64 * 64
	set[0].MustDo(t, "SET", "il:{raise}:qfence:raise", strconv.FormatInt(ahead, 10))
	last := uint64(0)
	for _, out := range []int{2, 0, 1} {
		occupy(t, "raise", set[out])
		other := session(t, open(t, urlOf(addrs(set))), 5*time.Second) // which has seen no counter
		c := mutex("raise", true)
		g, err := acquire(t.Context(), other, c)
		if err != nil {
			t.Fatal(err)
		}
		if g.Fence < last+driver.Stride {
			t.Errorf("without master %d: token %d after %d, want a larger one", out+1, g.Fence, last)
		}
		last = g.Fence
		_, _ = other.Release(t.Context(), c)
		set[out].MustDo(t, "DEL", "raise")
	}
	_ = s
	if last < uint64(ahead) {
		t.Errorf("token %d: the counter that was ahead, %d, was not met", last, ahead)
	}
}

// Three of five masters stand still for a while, under load. Nobody holds then who did not before, and all go on.
func TestMajorityStandsStill(t *testing.T) {
	if testing.Short() {
		t.Skip("a contest: make proof")
	}
	set := startMasters(t, 5)
	stop := time.AfterFunc(700*time.Millisecond, func() {
		for _, s := range set[:3] {
			_ = s.Pause()
		}
	})
	defer stop.Stop()
	goOn := time.AfterFunc(1400*time.Millisecond, func() {
		for _, s := range set[:3] {
			_ = s.Resume()
		}
	})
	defer goOn.Stop()
	late := &judge{t: t}
	began := time.Now()
	drivers, j := crowdWith(t, 6, urlOf(addrs(set)), 5*time.Second, 4*time.Second, func() {
		if time.Since(began) > 2*time.Second {
			late.mu.Lock()
			late.grants++
			late.mu.Unlock()
		}
	})
	t.Logf("%d grants, %d of them afterwards, longest wait %v, %+v", j.grants, late.grants, j.longest, total(drivers))
	if late.grants < 10 {
		t.Errorf("%d grants after the masters went on", late.grants)
	}
}

// crowdWith is crowd whose contenders bear errors.
func crowdWith(t *testing.T, n int, url string, ttl, during time.Duration, think func()) ([]*redlock.Driver, *judge) {
	t.Helper()
	j := &judge{t: t}
	ctx, cancel := context.WithTimeout(t.Context(), during)
	defer cancel()
	var drivers []*redlock.Driver
	done := make(chan struct{}, n)
	for range n {
		d := open(t, url)
		s := session(t, d, ttl)
		drivers = append(drivers, d)
		go func() {
			defer func() { done <- struct{}{} }()
			for ctx.Err() == nil {
				_ = contend(ctx, s, "crowd", false, j, think)
			}
		}()
	}
	for range n {
		<-done
	}
	return drivers, j
}
