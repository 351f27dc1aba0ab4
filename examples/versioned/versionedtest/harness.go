// Package versionedtest is the harness by which the conformance suite tries drivers over a table of versioned rows: that of
// examples/versioned, and those that are broken on purpose.
package versionedtest

import (
	"context"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/examples/versioned"
)

// Harness opens drivers on one table in memory, each over a link of its own. It is for testing/synctest bubbles.
type Harness struct {
	open  func(versioned.Table) driver.Driver
	table *versioned.Memory

	mu    sync.Mutex
	links map[driver.Driver]*link
}

// New returns a harness with an empty table for the drivers that open returns.
func New(open func(versioned.Table) driver.Driver) *Harness {
	return &Harness{open: open, table: new(versioned.Memory), links: map[driver.Driver]*link{}}
}

// Prefix implements [drivertest.Harness].
func (h *Harness) Prefix() string { return "suite/" }

// TTL implements [drivertest.Harness].
func (h *Harness) TTL() time.Duration { return time.Second }

// Slack implements [drivertest.Slacker]: nothing is late in virtual time.
func (h *Harness) Slack() time.Duration { return 0 }

// Driver implements [drivertest.Harness].
func (h *Harness) Driver(drivertest.T) driver.Driver {
	l := &link{table: h.table}
	d := h.open(l)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.links[d] = l
	return d
}

func (h *Harness) link(d driver.Driver) *link {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.links[d]
}

// Stall implements [drivertest.Staller].
func (h *Harness) Stall(_ drivertest.T, d driver.Driver, way drivertest.Way) (heal func()) {
	l := h.link(d)
	if way == drivertest.Replies {
		return l.hold(&l.replies)
	}
	return l.hold(&l.requests, &l.replies)
}

// Straggle implements [drivertest.Straggler]: each request is on its own.
func (h *Harness) Straggle(_ drivertest.T, d driver.Driver, n int) (deliver func() bool) {
	l, s := h.link(d), &straggler{before: n, deliver: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.straggler = s
	return func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.straggler == s {
			l.straggler = nil
		}
		close(s.deliver)
		return s.met
	}
}

// Calls implements [drivertest.Counter].
func (h *Harness) Calls(d driver.Driver) int { return int(h.link(d).calls.Load()) }

// Budget is a load and a swap for each change, and what a waiter looks meanwhile.
func (h *Harness) Budget() drivertest.Budget {
	return drivertest.Budget{Acquire: 2, Release: 2, Handoff: 4}
}

// Kill implements [drivertest.Killer].
func (h *Harness) Kill(_ drivertest.T, d driver.Driver) {
	l := h.link(d)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
}

// Restart does nothing: what is in the table is all that a restart would leave.
func (h *Harness) Restart(drivertest.T) {}

// Freeze stops a stranger by holding its requests and replies, between a load and a swap as often as not.
func (h *Harness) Freeze(t drivertest.T, name string) (thaw func()) {
	d := h.Driver(t)
	ctx, cancel := context.WithCancel(context.Background())
	s, err := d.Open(ctx, driver.Spec{ID: driver.NewID(), TTL: h.TTL()})
	if err != nil {
		t.Fatalf("the stranger: %v", err)
	}
	l, done := h.link(d), make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			c := driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All}
			_, _ = s.Acquire(ctx, c)
			_, _ = s.Release(ctx, c)
		}
	}()
	heal := l.hold(&l.requests, &l.replies)
	return sync.OnceFunc(func() {
		cancel()
		heal()
		<-done
		_ = s.Close(context.Background())
	})
}

// Cannot implements [drivertest.Abstainer].
func (h *Harness) Cannot(law string) string {
	return "the table knows no sessions that it could end: " + law + " is tried without"
}
