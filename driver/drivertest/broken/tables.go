package broken

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/examples/versioned"
)

// tableFault is what is wrong with a driver that loads a row and swaps it, as its requests show it. What is nil is right.
type tableFault struct {
	load func(value []byte) []byte                                                                            // what the driver makes of a row
	swap func(ctx context.Context, t versioned.Table, name string, value []byte, version int64) (bool, error) // in place of CompareAndSwap
	fail func(error) error                                                                                    // what the driver makes of an error
}

// tables is the harness of such drivers, each over a link of its own to one table.
type tables struct {
	table *versioned.Memory
	fault *tableFault

	mu    sync.Mutex
	links map[driver.Driver]*link
}

func newTables(f *tableFault) *tables {
	return &tables{table: new(versioned.Memory), fault: f, links: map[driver.Driver]*link{}}
}

func (h *tables) Prefix() string       { return "tables/" }
func (h *tables) TTL() time.Duration   { return time.Second }
func (h *tables) Slack() time.Duration { return 0 } // nothing is late in virtual time

func (h *tables) Driver(drivertest.T) driver.Driver {
	l := &link{table: h.table, fault: h.fault}
	d := versioned.New(l)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.links[d] = l
	return d
}

func (h *tables) link(d driver.Driver) *link {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.links[d]
}

func (h *tables) Calls(d driver.Driver) int { return int(h.link(d).calls.Load()) }

func (h *tables) Budget() drivertest.Budget {
	return drivertest.Budget{Acquire: 2, Release: 2, Handoff: 4}
}

func (h *tables) Stall(_ drivertest.T, d driver.Driver, way drivertest.Way) (heal func()) {
	return h.link(d).hold(way == drivertest.BothWays)
}

func (h *tables) Straggle(_ drivertest.T, d driver.Driver, n int) (deliver func() bool) {
	return h.link(d).straggle(n)
}

func (h *tables) Kill(_ drivertest.T, d driver.Driver) {
	l := h.link(d)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
}

func (h *tables) Cannot(string) string { return "only requests are tried here" }

// link is the way of one driver to the table. A request that was sent is carried out when it arrives, also if nobody waits for
// its answer any more.
type link struct {
	table versioned.Table
	fault *tableFault
	calls atomic.Int64

	mu                sync.Mutex
	requests, replies chan struct{} // closed when what is held may go on; nil while nothing is
	cut               bool          // nothing passes any more
	held              *heldRequest
}

// heldRequest is one that others overtake.
type heldRequest struct {
	before  int // requests that pass
	met     bool
	deliver chan struct{}
}

var errCut = errors.New("the link is cut")

// send carries one request and its reply.
func send[T any](ctx context.Context, l *link, request func(context.Context) (T, error)) (answer T, err error) {
	if err := ctx.Err(); err != nil {
		return answer, l.failed(err)
	}
	l.mu.Lock()
	cut := l.cut
	l.mu.Unlock()
	if cut {
		return answer, l.failed(errCut)
	}
	l.calls.Add(1)
	done := make(chan struct{})
	var got T
	var failed error
	stalled, held := l.request()
	go func() {
		defer close(done)
		wait(stalled)
		wait(held)
		got, failed = request(context.WithoutCancel(ctx))
		l.mu.Lock()
		stalled := l.replies
		l.mu.Unlock()
		wait(stalled)
	}()
	select {
	case <-done:
		return got, l.failed(failed)
	case <-ctx.Done():
		return answer, l.failed(ctx.Err())
	}
}

func (l *link) failed(err error) error {
	if err == nil || l.fault.fail == nil {
		return err
	}
	return l.fault.fail(err)
}

func wait(held <-chan struct{}) {
	if held != nil {
		<-held
	}
}

// request returns what holds the next request.
func (l *link) request() (stalled, held <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.held
	switch {
	case h == nil || h.met:
		return l.requests, nil
	case h.before > 0:
		h.before--
		return l.requests, nil
	}
	h.met = true
	return l.requests, h.deliver
}

func (l *link) straggle(n int) (deliver func() bool) {
	h := &heldRequest{before: n, deliver: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = h
	return func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.held == h {
			l.held = nil
		}
		close(h.deliver)
		return h.met
	}
}

func (l *link) hold(both bool) (heal func()) {
	held := make(chan struct{})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.replies = held; both {
		l.requests = held
	}
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.requests, l.replies = nil, nil
		close(held)
	})
}

// Load implements versioned.Table.
func (l *link) Load(ctx context.Context, name string) (value []byte, version int64, err error) {
	type row struct {
		value   []byte
		version int64
	}
	r, err := send(ctx, l, func(ctx context.Context) (r row, err error) {
		r.value, r.version, err = l.table.Load(ctx, name)
		return r, err
	})
	if r.version > 0 && l.fault.load != nil {
		r.value = l.fault.load(r.value)
	}
	return r.value, r.version, err
}

// CompareAndSwap implements versioned.Table.
func (l *link) CompareAndSwap(ctx context.Context, name string, value []byte, version int64) (swapped bool, err error) {
	if l.fault.swap != nil {
		return l.fault.swap(ctx, (*sound)(l), name, value, version)
	}
	return (*sound)(l).CompareAndSwap(ctx, name, value, version)
}

// sound is a link whose swaps have no fault.
type sound link

func (l *sound) Load(ctx context.Context, name string) (value []byte, version int64, err error) {
	return (*link)(l).Load(ctx, name)
}

func (l *sound) CompareAndSwap(ctx context.Context, name string, value []byte, version int64) (swapped bool, err error) {
	return send(ctx, (*link)(l), func(ctx context.Context) (bool, error) { return l.table.CompareAndSwap(ctx, name, value, version) })
}
