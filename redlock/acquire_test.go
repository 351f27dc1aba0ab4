package redlock_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
)

// A claim gets one master, waits longer than its TTL without a renewal, and then gets another one.
// The first is over by then and belongs to somebody else, so that the two are no majority.
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

// Three of five masters stand still for a while, under load. Nobody holds then who did not before,
// and all go on.
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

// A16: every two of three users of a semaphore can have two of three masters on their side, so a
// limit of two would let in all three; the same goes for a reader and a writer. Such locks are
// refused, and no master is asked.
func TestA16_MajoritiesDoNotCount(t *testing.T) {
	set := startMasters(t, 3)
	client := redistest.OpenClient(t, urlOf(addrs(set)), nil)
	if _, err := client.Semaphore("users", 2).TryAcquire(t.Context(), 1); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a permit of a semaphore over three masters: %v, want %v", err, errors.ErrUnsupported)
	}
	if _, err := client.RWMutex("readers").TryRLock(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a read lock over three masters: %v, want %v", err, errors.ErrUnsupported)
	}
	s := session(t, open(t, urlOf(addrs(set))), time.Minute)
	for _, c := range []driver.Claim{
		{Name: "users", ID: driver.NewID(), Kind: driver.Permit, Weight: 1, Limit: 2},
		{Name: "readers", ID: driver.NewID(), Kind: driver.Read, Weight: 1, Limit: driver.All},
	} {
		if g, err := s.Acquire(t.Context(), c); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("a %s claim over three masters: %+v, %v, want %v", c.Kind, g, err, driver.ErrRefused)
		}
		for i, server := range set {
			if server.MustDo(t, "EXISTS", c.Name) != "0" {
				t.Errorf("a %s claim that is to be refused stands on master %d", c.Kind, i+1)
			}
		}
	}
}

// A free claim and its release cost one request to each master, sent to all before one has
// answered.
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
