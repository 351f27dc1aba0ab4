// Package links gives a harness of package drivertest what it needs between a driver and its
// server: wires that the suite stalls, deafens, counts and cuts, by driver.
//
//	type harness struct {
//		*links.Links // drivertest.Staller, Straggler, Deafener and Killer, and the half of Counter
//		server, prefix string
//	}
//
//	func newHarness(t *testing.T) drivertest.Harness {
//		return &harness{Links: links.New(), server: startServer(t), prefix: "suite-" + driver.NewID() + "/"}
//	}
//
//	func (h *harness) Driver(t drivertest.T) driver.Driver {
//		w := h.Lay(t, h.server)
//		d, err := rowlock.New(w.Addr()) // in place of the server's address
//		if err != nil {
//			t.Fatalf("open: %v", err)
//		}
//		h.Belong(d, w)
//		return d
//	}
//
//	func (h *harness) Prefix() string     { return h.prefix }
//	func (h *harness) TTL() time.Duration { return time.Second }
//
//	func (h *harness) Budget() drivertest.Budget {
//		return drivertest.Budget{Acquire: 1, Release: 1, Handoff: 2}
//	}
//
//	func TestConformance(t *testing.T) { drivertest.Run(t, newHarness) }
//
// A server that tells its clients unasked needs [Links.Notice], or Deafen loses nothing. A driver
// with several connections to several servers has a wire to each.
package links

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
)

// Links are the wires of a harness. Its methods may be called concurrently; the fields are set
// before the first wire is laid.
type Links struct {
	// Request says which packets to the server count as calls; nil: all. The greeting of a new
	// connection is none.
	Request func(packet []byte) bool

	// Requests says how many calls a packet to the server is, where one may carry several; nil:
	// one, or none where Request says so.
	Requests func(packet []byte) int

	// Notice says which packets from the server are told unasked, which Deafen loses; nil: none.
	Notice func(packet []byte) bool

	// RESP has both asked about whole frames of the protocol of Redis. Elsewhere they see what one
	// read of the wire brought: mostly what was written at once, though the kernel may join or part
	// it.
	RESP bool

	mu sync.Mutex
	of map[driver.Driver][]*link
	by map[*wire.Wire]*link
}

// link is a wire with its count.
type link struct {
	*wire.Wire
	calls atomic.Int64
	deaf  atomic.Int64 // how many Deafen have not been healed
}

var _ interface {
	drivertest.Staller
	drivertest.Straggler
	drivertest.Deafener
	drivertest.Killer
} = (*Links)(nil)

// New returns no wires yet.
func New() *Links { return &Links{of: map[driver.Driver][]*link{}, by: map[*wire.Wire]*link{}} }

// Lay opens a wire to the server at addr, "host:port", which is closed at the end of the test. A
// driver connects with the wire's Addr; tell by Belong which driver that is.
func (l *Links) Lay(t drivertest.T, addr string) *wire.Wire {
	t.Helper()
	w, err := wire.Listen(context.Background(), addr)
	if err != nil {
		t.Fatalf("links: %v", err)
	}
	t.Cleanup(w.Close)
	k := &link{Wire: w}
	request := func(p []byte) {
		switch {
		case l.Requests != nil:
			k.calls.Add(int64(l.Requests(p)))
		case l.Request == nil || l.Request(p):
			k.calls.Add(1)
		}
	}
	lost := func(p []byte) bool { return k.deaf.Load() > 0 && l.Notice != nil && l.Notice(p) }
	if l.RESP {
		w.Filter(wire.Requests, func(frame []byte) bool { request(frame); return true })
		w.Filter(wire.Replies, func(frame []byte) bool { return !lost(frame) })
	} else {
		w.Drop(func(d wire.Direction, packet []byte) bool {
			if d == wire.Replies {
				return lost(packet)
			}
			request(packet)
			return false
		})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.by[w] = k
	return w
}

// Belong says that d uses these wires, which were laid before, besides those that it has.
func (l *Links) Belong(d driver.Driver, wires ...*wire.Wire) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range wires {
		l.of[d] = append(l.of[d], l.by[w])
	}
}

// Wires returns those that belong to d.
func (l *Links) Wires(d driver.Driver) []*wire.Wire {
	var wires []*wire.Wire
	for _, k := range l.links(d) {
		wires = append(wires, k.Wire)
	}
	return wires
}

func (l *Links) links(d driver.Driver) []*link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of[d]
}

// Stall implements [drivertest.Staller].
func (l *Links) Stall(_ drivertest.T, d driver.Driver, way drivertest.Way) (heal func()) {
	direction := wire.Both
	if way == drivertest.Replies {
		direction = wire.Replies
	}
	var heals []func()
	for _, k := range l.links(d) {
		heals = append(heals, k.Stall(direction))
	}
	return func() {
		for _, heal := range heals {
			heal()
		}
	}
}

// Straggle implements [drivertest.Straggler].
func (l *Links) Straggle(_ drivertest.T, d driver.Driver, n int) (deliver func() bool) {
	var all []func() bool
	for _, k := range l.links(d) {
		last := k.calls.Load() + int64(n)
		all = append(all, k.Hold(func([]byte) bool { return k.calls.Load() > last }))
	}
	return func() (met bool) {
		for _, deliver := range all {
			met = deliver() || met
		}
		return met
	}
}

// Deafen implements [drivertest.Deafener].
func (l *Links) Deafen(_ drivertest.T, d driver.Driver) (heal func()) {
	for _, k := range l.links(d) {
		k.deaf.Add(1)
	}
	return sync.OnceFunc(func() {
		for _, k := range l.links(d) {
			k.deaf.Add(-1)
		}
	})
}

// Kill implements [drivertest.Killer]: it cuts d off for good. That is how a server sees a process
// die, but for what only the process itself has open, such as files.
func (l *Links) Kill(_ drivertest.T, d driver.Driver) {
	for _, k := range l.links(d) {
		k.Refuse()
		k.Cut()
	}
}

// Calls is the half of [drivertest.Counter] that is the same for all: how many requests d has made
// so far.
func (l *Links) Calls(d driver.Driver) int {
	calls := 0
	for _, k := range l.links(d) {
		calls += int(k.calls.Load())
	}
	return calls
}
