package versioned_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/examples/versioned"
)

// The example keeps every law, in virtual time.
func TestVersioned(t *testing.T) {
	drivertest.RunBubble(t, func(*testing.T) drivertest.Harness {
		return &harness{table: new(versioned.Memory), links: map[driver.Driver]*link{}}
	})
}

// link is the way of one driver to the table. A request that was sent is carried out when it arrives, also if nobody waits
// for its answer any more.
type link struct {
	table versioned.Table
	calls atomic.Int64

	mu                sync.Mutex
	requests, replies chan struct{} // closed when what is held may go on; nil while nothing is
	cut               bool
	straggler         *straggler
}

// straggler is the request that others overtake.
type straggler struct {
	before  int // requests that pass
	met     bool
	deliver chan struct{}
}

// send carries one request and its reply.
func send[T any](ctx context.Context, l *link, request func(context.Context) (T, error)) (answer T, err error) {
	if err := ctx.Err(); err != nil {
		return answer, err
	}
	l.calls.Add(1)
	done := make(chan struct{})
	var got T
	var failed error
	straggles := l.straggles()
	go func() {
		defer close(done)
		l.pass(&l.requests)
		if straggles != nil {
			<-straggles
		}
		if failed = l.broken(); failed == nil {
			got, failed = request(context.WithoutCancel(ctx))
		}
		l.pass(&l.replies)
	}()
	select {
	case <-done:
		return got, failed
	case <-ctx.Done():
		return answer, ctx.Err()
	}
}

// straggles returns what holds the next request alone; nil: nothing.
func (l *link) straggles() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.straggler
	switch {
	case s == nil || s.met:
		return nil
	case s.before > 0:
		s.before--
		return nil
	}
	s.met = true
	return s.deliver
}

func (l *link) pass(way *chan struct{}) {
	l.mu.Lock()
	held := *way
	l.mu.Unlock()
	if held != nil {
		<-held
	}
}

var errCut = errors.New("the link is cut")

func (l *link) broken() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return errCut
	}
	return nil
}

// hold holds what goes these ways.
func (l *link) hold(ways ...*chan struct{}) (heal func()) {
	held := make(chan struct{})
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, way := range ways {
		*way = held
	}
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, way := range ways {
			*way = nil
		}
		close(held)
	})
}

// Load and CompareAndSwap implement versioned.Table.
func (l *link) Load(ctx context.Context, name string) (value []byte, version int64, err error) {
	type row struct {
		value   []byte
		version int64
	}
	r, err := send(ctx, l, func(ctx context.Context) (r row, err error) {
		r.value, r.version, err = l.table.Load(ctx, name)
		return r, err
	})
	return r.value, r.version, err
}

func (l *link) CompareAndSwap(ctx context.Context, name string, value []byte, version int64) (swapped bool, err error) {
	return send(ctx, l, func(ctx context.Context) (bool, error) { return l.table.CompareAndSwap(ctx, name, value, version) })
}

// harness opens drivers on one table, each over a link of its own.
type harness struct {
	table *versioned.Memory

	mu    sync.Mutex
	links map[driver.Driver]*link
}

func (h *harness) Prefix() string       { return "suite/" }
func (h *harness) TTL() time.Duration   { return time.Second }
func (h *harness) Slack() time.Duration { return 0 } // nothing is late in virtual time

func (h *harness) Driver(drivertest.T) driver.Driver {
	l := &link{table: h.table}
	d := versioned.New(l)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.links[d] = l
	return d
}

func (h *harness) link(d driver.Driver) *link {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.links[d]
}

func (h *harness) Stall(_ drivertest.T, d driver.Driver, way drivertest.Way) (heal func()) {
	l := h.link(d)
	if way == drivertest.Replies {
		return l.hold(&l.replies)
	}
	return l.hold(&l.requests, &l.replies)
}

// Straggle has one request overtaken by others: each is on its own.
func (h *harness) Straggle(_ drivertest.T, d driver.Driver, n int) (deliver func() bool) {
	l, s := h.link(d), &straggler{before: n, deliver: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.straggler = s
	return func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.straggler = nil
		close(s.deliver)
		return s.met
	}
}

func (h *harness) Calls(d driver.Driver) int { return int(h.link(d).calls.Load()) }

// Budget is a load and a swap for each change, and what a waiter looks meanwhile.
func (h *harness) Budget() drivertest.Budget {
	return drivertest.Budget{Acquire: 2, Release: 2, Handoff: 4}
}

func (h *harness) Kill(_ drivertest.T, d driver.Driver) {
	l := h.link(d)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
}

// Restart does nothing: what is in the table is all that a restart would leave.
func (h *harness) Restart(drivertest.T) {}

// Freeze stops a stranger by holding its requests and replies, between a load and a swap as often as not.
func (h *harness) Freeze(t drivertest.T, name string) (thaw func()) {
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

func (h *harness) Cannot(law string) string {
	return "the table knows no sessions that it could end: " + law + " is tried without"
}
