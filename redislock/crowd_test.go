package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
)

// crowd is goroutines of several clients that lock and release one name, and the judge of what they
// are granted.
type crowd struct {
	t    *testing.T
	name string

	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu      sync.Mutex
	holder  *interlock.Lease // between its Lock and its Release
	tokens  map[uint64]bool
	highest uint64
	grants  map[int]int // by goroutine
	longest time.Duration
	lost    int
	overlap int
}

// newCrowd starts two goroutines of each client, which go on until stop.
func newCrowd(t *testing.T, name string, clients ...*interlock.Client) *crowd {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &crowd{t: t, name: name, cancel: cancel, tokens: map[uint64]bool{}, grants: map[int]int{}}
	for i, client := range clients {
		for j := range 2 {
			c.tasks.Go(func() { c.member(ctx, 2*i+j, client.Mutex(name)) })
		}
	}
	t.Cleanup(c.stop)
	return c
}

func (c *crowd) stop() {
	c.cancel()
	c.tasks.Wait()
}

func (c *crowd) member(ctx context.Context, who int, m *interlock.Mutex) {
	last := uint64(0)
	for ctx.Err() == nil {
		started := time.Now()
		lease, err := m.Lock(ctx)
		if err != nil {
			if ctx.Err() == nil {
				c.t.Errorf("Lock of %d: %v; want it to go on waiting", who, err)
			}
			continue
		}
		c.granted(who, lease, time.Since(started))
		if lease.Fence() <= last {
			c.t.Errorf("%d was granted token %d after %d", who, lease.Fence(), last)
		}
		last = lease.Fence()
		c.leaving(lease)
		if err := lease.Release(); errors.Is(err, interlock.ErrLost) {
			c.mu.Lock()
			c.lost++
			c.mu.Unlock()
		} else if err != nil && !errors.Is(err, interlock.ErrUncertain) {
			c.t.Errorf("Release of %d: %v", who, err)
		}
	}
}

func (c *crowd) granted(who int, lease *interlock.Lease, waited time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holder != nil && c.holder.Err() == nil && lease.Err() == nil {
		c.overlap++
	}
	if c.tokens[lease.Fence()] {
		c.t.Errorf("token %d was granted twice", lease.Fence())
	}
	c.holder, c.tokens[lease.Fence()] = lease, true
	c.highest = max(c.highest, lease.Fence())
	c.grants[who]++
	c.longest = max(c.longest, waited)
}

func (c *crowd) leaving(lease *interlock.Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holder == lease {
		c.holder = nil
	}
}

// turns waits until everybody was granted the name some more times.
func (c *crowd) turns(n int) {
	c.t.Helper()
	c.mu.Lock()
	goal := map[int]int{}
	for who, got := range c.grants {
		goal[who] = got + n
	}
	c.mu.Unlock()
	eventually(c.t, fmt.Sprintf("%d more turns for everybody", n), func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for who, want := range goal {
			if c.grants[who] < want {
				return false
			}
		}
		return len(c.grants) > 0
	})
}

// everybody waits until so many goroutines were granted the name at least once.
func (c *crowd) everybody(n int) {
	c.t.Helper()
	eventually(c.t, "a turn for everybody", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.grants) == n
	})
}

// exclusive is the verdict where no failover may have lost a lock.
func (c *crowd) exclusive(wait time.Duration) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.overlap > 0 || c.lost > 0 {
		c.t.Errorf("%d grants while another one held, %d leases lost; want none of either", c.overlap, c.lost)
	}
	if c.longest > wait {
		c.t.Errorf("somebody waited for %v; want at most %v", c.longest, wait)
	}
}

// top is the highest token so far.
func (c *crowd) top() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.highest
}
