package redlock_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/wire"
)

// harness is a set of masters for the conformance suite. Each driver has a wire of its own to each.
type harness struct {
	t      *testing.T
	set    []*servertest.Server
	prefix string

	mu    sync.Mutex
	wires map[driver.Driver][]*line
}

// line is the wire of one driver to one master.
type line struct {
	*wire.Wire
	calls atomic.Int64
}

var harnesses atomic.Int64

func newHarness(t *testing.T, set []*servertest.Server) *harness {
	t.Helper()
	return &harness{t: t, set: set, wires: map[driver.Driver][]*line{}, prefix: fmt.Sprintf("suite/%d/", harnesses.Add(1))}
}

func (h *harness) Prefix() string     { return h.prefix }
func (h *harness) TTL() time.Duration { return 2 * time.Second }

func (h *harness) Driver(t drivertest.T) driver.Driver {
	var wires []*line
	var addrs []string
	for _, s := range h.set {
		w := &line{Wire: wire.New(h.t, s.Addr())}
		w.Filter(wire.Requests, func(frame []byte) bool {
			if !overhead(frame) {
				w.calls.Add(1)
			}
			return true
		})
		wires, addrs = append(wires, w), append(addrs, w.Addr())
	}
	d := open(t, urlOf(addrs))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wires[d] = wires
	return d
}

// overhead reports whether a request is the client's own: it greets a server, asks on a new connection which one it is, and
// whether it lives.
func overhead(frame []byte) bool {
	for _, word := range []string{"HELLO", "CLIENT", "PING", "ping", "hello", "client", "INFO"} {
		if bytes.Contains(frame[:min(len(frame), 24)], []byte(word)) {
			return true
		}
	}
	return false
}

func (h *harness) each(d driver.Driver, f func(*line)) {
	h.mu.Lock()
	wires := h.wires[d]
	h.mu.Unlock()
	for _, w := range wires {
		f(w)
	}
}

// Kill cuts the wires for good.
func (h *harness) Kill(_ drivertest.T, d driver.Driver) {
	h.each(d, func(w *line) {
		w.Refuse()
		w.Cut()
	})
}

func (h *harness) Restart(t drivertest.T) {
	for _, s := range h.set {
		if err := s.Restart(context.Background()); err != nil {
			t.Fatalf("restart: %v", err)
		}
	}
}

func (h *harness) Stall(_ drivertest.T, d driver.Driver, way drivertest.Way) (heal func()) {
	var heals []func()
	h.each(d, func(w *line) {
		if way == drivertest.Replies {
			heals = append(heals, w.Stall(wire.Replies))
		} else {
			heals = append(heals, w.Stall(wire.Both))
		}
	})
	return func() {
		for _, heal := range heals {
			heal()
		}
	}
}

// Deafen loses the messages of subscriptions.
func (h *harness) Deafen(_ drivertest.T, d driver.Driver) (heal func()) {
	h.each(d, func(w *line) {
		w.Filter(wire.Replies, func(frame []byte) bool {
			return !bytes.Contains(frame[:min(len(frame), 20)], []byte("message"))
		})
	})
	return func() { h.each(d, func(w *line) { w.Filter(wire.Replies, nil) }) }
}

// Calls counts those of the master that was asked most.
func (h *harness) Calls(d driver.Driver) int {
	most := int64(0)
	h.each(d, func(w *line) { most = max(most, w.calls.Load()) })
	return int(most)
}

// Budget is for one master: all are asked at once. A handoff costs one more where the next claim was given some masters
// before the others and must write its token back, and yet one more where a master does not know the script for it:
// TestRoundTrips counts exactly.
func (h *harness) Budget() drivertest.Budget {
	return drivertest.Budget{Acquire: 1, Release: 1, Handoff: 3}
}

func (h *harness) Cannot(law string) string {
	return "a Redis knows no sessions that it could end: " + law + " is tried without"
}

func (h *harness) Freeze(t drivertest.T, name string) (thaw func()) {
	w := startWorker(t, urlOf(addrs(h.set)), name)
	w.stop(t)
	return sync.OnceFunc(w.kill)
}

func TestConformanceOverThree(t *testing.T) { conform(t, 3) }
func TestConformanceOverFive(t *testing.T)  { conform(t, 5) }

func conform(t *testing.T, n int) {
	t.Helper()
	drivertest.Run(t, func(t *testing.T) drivertest.Harness {
		return newHarness(t, startMasters(t, n, durable...))
	})
}
