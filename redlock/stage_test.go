package redlock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redlock"
)

// session opens a session on a driver, and closes both with the test.
func session(t *testing.T, d *redlock.Driver, ttl time.Duration) driver.Session {
	t.Helper()
	s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: ttl})
	if err != nil {
		t.Fatalf("open a session: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = d.Close(ctx)
	})
	return s
}

func mutex(name string, queue bool) driver.Claim {
	return driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Queue: queue}
}

// judge watches a name from inside one process: who holds, and that tokens grow.
type judge struct {
	t       *testing.T
	inside  atomic.Int32
	mu      sync.Mutex
	last    uint64
	grants  int
	longest time.Duration
}

// enter is called while the claim is held.
func (j *judge) enter(fence uint64, waited time.Duration) {
	if n := j.inside.Add(1); n != 1 {
		j.t.Errorf("%d hold at once", n)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if fence < j.last+driver.Stride {
		j.t.Errorf("token %d after %d: want at least %d more", fence, j.last, driver.Stride)
	}
	j.last, j.grants, j.longest = fence, j.grants+1, max(j.longest, waited)
}

func (j *judge) leave() { j.inside.Add(-1) }

// acquire acquires and waits until the claim is held.
func acquire(ctx context.Context, s driver.Session, c driver.Claim) (driver.Grant, error) {
	g, err := s.Acquire(ctx, c)
	for err == nil && !g.Held {
		g, err = s.Wait(ctx, c)
	}
	return g, err
}

// contend has one claim after the other of a session hold the name until ctx ends. With turn each
// stands in line again in the step in which the last one leaves.
func contend(ctx context.Context, s driver.Session, name string, turn bool, j *judge, think func()) error {
	for c := mutex(name, true); ; {
		began := time.Now()
		g, err := acquire(ctx, s, c)
		if err != nil {
			_, _ = s.Release(context.WithoutCancel(ctx), c)
			if ctx.Err() != nil {
				return nil //nolint:nilerr // it is over, and the error says so
			}
			return fmt.Errorf("acquire: %w", err)
		}
		j.enter(g.Fence, time.Since(began))
		if think != nil {
			think()
		}
		j.leave()
		next := mutex(name, true)
		if turn && ctx.Err() == nil {
			if _, _, err = s.(driver.Requeuer).Requeue(context.WithoutCancel(ctx), c, next); err == nil {
				c = next
				continue
			}
			_, _ = s.Release(context.WithoutCancel(ctx), next)
		}
		if _, err = s.Release(context.WithoutCancel(ctx), c); err != nil {
			return fmt.Errorf("release: %w", err)
		}
		c = next
	}
}

// crowd has n drivers contend for a name until there were so many grants, and returns them with the
// judge.
func crowd(t *testing.T, n, grants int, url func(i int) string, ttl time.Duration, turn bool, think func()) ([]*redlock.Driver, *judge) {
	t.Helper()
	j := &judge{t: t}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var drivers []*redlock.Driver
	var all sync.WaitGroup
	for i := range n {
		d := open(t, url(i))
		s := session(t, d, ttl)
		drivers = append(drivers, d)
		all.Go(func() {
			if err := contend(ctx, s, "crowd", turn, j, think); err != nil {
				t.Errorf("contender %d: %v", i, err)
			}
		})
	}
	until(t, 4*ttl, fmt.Sprintf("%d grants", grants), func() bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.grants >= grants
	})
	cancel()
	all.Wait()
	return drivers, j
}

func total(drivers []*redlock.Driver) (sum redlock.Stats) {
	for _, d := range drivers {
		s := d.Stats()
		sum.Grants, sum.Raises, sum.Yields = sum.Grants+s.Grants, sum.Raises+s.Raises, sum.Yields+s.Yields
	}
	return sum
}

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
