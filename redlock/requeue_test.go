package redlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// One leaves and stands in line again while masters have lost their votes. It has left wherever the master says so, and was held until
// then; that nothing new can stand there for now is the next claim's matter, which waits until it can.
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
					// In one step: a survey in between would find that its wait is over and its vote is gone, and have it wait anew.
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
