package redlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
)

// A try that gets no majority leaves nothing behind, also where it was granted and the answer did
// not come.
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

// One master gets to see the request only after the lock was released. It must not stand there then
// until its TTL is over.
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

// One leaves and stands in line again while masters have lost their votes. It has left wherever the
// master says so, and was held until then; that nothing new can stand there for now is the next
// claim's matter, which waits until it can.
func TestWhoLeavesHasLeftMastersWithoutAVote(t *testing.T) {
	t.Parallel()
	for _, voteless := range []int{1, 2, 3} {
		for _, known := range []bool{false, true} { // or it has to hear so by this very question
			t.Run(fmt.Sprintf("%d of 3, known=%v", voteless, known), func(t *testing.T) {
				t.Parallel()
				set := startMasters(t, 3)
				d := open(t, urlOf(addrs(set))+"?node_timeout=10s&max_ttl=5m")
				s := session(t, d, 5*time.Minute)
				old, next := mutex("left", true), mutex("left", true)
				g, err := acquire(t.Context(), s, old)
				if err != nil {
					t.Fatal(err)
				}
				everywhere(t, set, "left")
				if known { // and the process hears every master, so that the next claim could join there
					occupy(t, "probe", set...)
					until(t, 30*time.Second, "heard", func() bool { return tried(t, s) == nil && d.Hears() == 3 })
				}
				vote := set[0].MustDo(t, "GET", "il:{redlock}:vote")
				for _, server := range set[:voteless] { // and so it stays, since the record says that it waits
					server.MustDo(t, "HSET", "il:{redlock}:member", "until", fmt.Sprint(time.Now().Add(time.Hour).UnixMilli()))
					server.MustDo(t, "DEL", "il:{redlock}:vote")
				}
				if known {
					until(t, 30*time.Second, "seen to have no vote", func() bool {
						_ = tried(t, s)
						return d.Voters() == 3-voteless
					})
				}
				got, held, err := s.(driver.Requeuer).Requeue(t.Context(), old, next)
				if !held || err != nil {
					t.Errorf("all masters have let it go: it was held %v, %v", held, err)
				}
				if got.Held && voteless > 1 {
					t.Errorf("with %d of 3 masters without a vote the next claim is held", voteless)
				}
				for _, server := range set[:voteless] {
					until(t, 30*time.Second, "free of the claim that left", func() bool { return !ours(t, server, "left") })
					// In one step: a survey in between would find that its wait is over and its
					// vote is gone, and have it wait anew.
					server.MustDo(t, "EVAL", "redis.call('HSET', KEYS[1], 'until', 0) return redis.call('SET', KEYS[2], ARGV[1])", "2", "il:{redlock}:member", "il:{redlock}:vote", vote)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				for !got.Held {
					if got, err = s.Wait(ctx, next); err != nil {
						t.Fatalf("when the masters have their votes again: %v", err)
					}
				}
				if got.Fence < g.Fence+driver.Stride {
					t.Errorf("token %d after %d", got.Fence, g.Fence)
				}
			})
		}
	}
}

// tried asks for a name that another program may have.
func tried(t *testing.T, s driver.Session) error {
	t.Helper()
	c := mutex("probe", true)
	_, err := s.Acquire(t.Context(), c)
	_, _ = s.Release(t.Context(), c)
	return err
}
