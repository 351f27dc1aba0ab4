package redlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redlock"
)

// memories are the masters that come back without their memory, or without its last second perhaps.
var memories = map[string][]string{"empty": nil, "all but a second": kept}

// waited has a master that waits for its vote have waited.
func waited(t *testing.T, d *redlock.Driver, s *servertest.Server) {
	t.Helper()
	until(t, 30*time.Second, "waiting for its vote", func() bool {
		_, _ = d.Masters(t.Context())
		return record(t, s, "run") != "" && record(t, s, "until") != "0" && !votes(t, s)
	})
	s.MustDo(t, "HSET", "il:{redlock}:member", "until", "1")
	until(t, 30*time.Second, "a vote of the master that has waited", func() bool {
		_, _ = d.Masters(t.Context())
		return votes(t, s)
	})
}

// renew renews a session and says which claims are lost.
func renew(t *testing.T, s driver.Session) ([]driver.Loss, error) {
	t.Helper()
	r, err := s.Renew(t.Context())
	return r.Lost, err
}

// Every master restarts, one at a time, and the next one as soon as the last one votes. Who holds
// renews meanwhile, and holds all along; who waits is next.
func TestAHeldClaimOutlivesARollingRestart(t *testing.T) {
	t.Parallel()
	for memory, args := range memories {
		for _, n := range []int{3, 5} {
			t.Run(fmt.Sprintf("%d masters, %s", n, memory), func(t *testing.T) {
				t.Parallel()
				set := startMasters(t, n, args...)
				d := open(t, urlOf(addrs(set)))
				s, others := session(t, d, time.Minute), session(t, open(t, urlOf(addrs(set))), time.Minute)
				c, next := mutex("leader", false), mutex("leader", true)
				g, err := acquire(t.Context(), s, c)
				if err != nil {
					t.Fatal(err)
				}
				everywhere(t, set, "leader")
				if g, err := others.Acquire(t.Context(), next); g.Held || err != nil {
					t.Fatalf("behind the leader: %+v, %v", g, err)
				}
				for i, one := range set {
					if err := one.Restart(t.Context()); err != nil {
						t.Fatal(err)
					}
					until(t, 30*time.Second, fmt.Sprintf("master %d taken in", i+1), func() bool {
						if lost, err := renew(t, s); len(lost) > 0 || err != nil {
							t.Fatalf("a renewal after master %d restarted: lost %v, error %v", i+1, lost, err)
						}
						return ours(t, one, "leader")
					})
					if lost, err := renew(t, s); len(lost) > 0 || err != nil { // in which it was taken in, if the last one has found it there
						t.Fatalf("the next renewal: lost %v, error %v", lost, err)
					}
					waited(t, d, one)
				}
				if lost, err := renew(t, s); len(lost) > 0 || err != nil {
					t.Errorf("a renewal after all masters restarted: lost %v, error %v", lost, err)
				}
				if held, err := s.Release(t.Context(), c); !held || err != nil {
					t.Errorf("release: held %v, error %v", held, err)
				}
				var then driver.Grant
				until(t, 30*time.Second, "granted to who waited", func() bool {
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
					defer cancel()
					then, err = acquire(ctx, others, next) // too few have confirmed a subscription perhaps
					return err == nil
				})
				if then.Fence < g.Fence+driver.Stride {
					t.Errorf("the next one has token %d after %d", then.Fence, g.Fence)
				}
			})
		}
	}
}

// The same with leases that a client renews by itself, and masters that wait for as long as they
// have to.
func TestALeaderOutlivesARollingRestart(t *testing.T) {
	if testing.Short() {
		t.Skip("ten masters that wait for MaxTTL: make proof")
	}
	t.Parallel()
	for memory, args := range memories {
		t.Run(memory, func(t *testing.T) {
			t.Parallel()
			const ttl = 3 * time.Second
			set := startMasters(t, 5, args...)
			url := urlOf(addrs(set)) + "?max_ttl=" + ttl.String()
			var clients []*interlock.Client
			for range 2 {
				c, err := interlock.Open(t.Context(), url, &interlock.Options{TTL: ttl})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				clients = append(clients, c)
			}
			lease, err := clients[0].Mutex("leader").Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			stands := make(chan uint64, 1)
			go func() {
				next, err := clients[1].Mutex("leader").Lock(t.Context())
				if err != nil {
					t.Errorf("who waits behind the leader: %v", err)
					close(stands)
					return
				}
				stands <- next.Fence()
				_ = next.Release()
			}()
			for i, one := range set {
				if err := one.Restart(t.Context()); err != nil {
					t.Fatal(err)
				}
				until(t, 30*time.Second, "a vote of the master that came back", func() bool {
					_, _ = clients[0].Mutex("something else").TryLock(t.Context())
					return votes(t, one)
				})
				if err := context.Cause(lease.Context()); err != nil {
					t.Fatalf("the lease was lost when master %d had restarted: %v", i+1, err)
				}
			}
			if err := lease.Release(); err != nil {
				t.Errorf("release: %v", err)
			}
			select {
			case fence := <-stands:
				if fence <= lease.Fence() {
					t.Errorf("who waited has token %d after %d", fence, lease.Fence())
				}
			case <-time.After(30 * time.Second):
				t.Error("who waited was not let in")
			}
		})
	}
}
