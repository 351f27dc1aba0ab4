package redistest

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
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/worker"
)

// Store is what a [Harness] needs to know of a store.
type Store struct {
	URL      string // by which another process opens it
	TTL      time.Duration
	Budget   drivertest.Budget
	Together bool // each request goes to all servers at once: what counts is the server that was asked most
	Open     func(t drivertest.T, b *Proxies) driver.Driver
	Restart  func(ctx context.Context) error
}

// Harness is a store in Redis for the conformance suite. Each driver has [Proxies] of its own.
type Harness struct {
	store  Store
	prefix string

	mu     sync.Mutex
	opened map[driver.Driver]*Proxies
}

// Durable are the arguments of a server that keeps locks and tokens over a restart.
var Durable = []string{"--appendonly", "yes", "--appendfsync", "always"}

// Single makes a harness for a server of its own. URLs of the store have the scheme, and open opens
// it at an address.
func Single(t *testing.T, scheme string, budget drivertest.Budget, open func(t drivertest.T, addr string) driver.Driver) *Harness {
	t.Helper()
	server := servertest.Redis(t, Durable...)
	return NewHarness(Store{
		URL: scheme + "://" + server.Addr(), TTL: time.Second, Budget: budget, Restart: server.Restart,
		Open: func(t drivertest.T, b *Proxies) driver.Driver { return open(t, b.To(server.Addr()).Addr()) },
	})
}

var harnesses atomic.Int64

// NewHarness makes a harness. Several may have the same servers.
func NewHarness(s Store) *Harness {
	return &Harness{store: s, prefix: fmt.Sprintf("suite/%d/", harnesses.Add(1)), opened: map[driver.Driver]*Proxies{}}
}

// Prefix is one that no other harness of the process has.
func (h *Harness) Prefix() string { return h.prefix }

// TTL is the store's.
func (h *Harness) TTL() time.Duration { return h.store.TTL }

// Driver opens the store over proxies.
func (h *Harness) Driver(t drivertest.T) driver.Driver {
	b := NewProxies(t)
	d := h.store.Open(t, b)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.opened[d] = b
	return d
}

func (h *Harness) proxies(d driver.Driver) *Proxies {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.opened[d]
}

// Kill cuts the driver off for good.
func (h *Harness) Kill(_ drivertest.T, d driver.Driver) { h.proxies(d).Kill() }

// Restart restarts the servers, in a minute at most.
func (h *Harness) Restart(t drivertest.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := h.store.Restart(ctx); err != nil {
		t.Fatalf("restart: %v", err)
	}
}

// Stall holds what the driver and its servers send.
func (h *Harness) Stall(_ drivertest.T, d driver.Driver, way drivertest.Way) (heal func()) {
	if way == drivertest.Replies {
		return h.proxies(d).Stall(wire.Replies)
	}
	return h.proxies(d).Stall(wire.Both)
}

// Straggle holds a request of the driver that others overtake.
func (h *Harness) Straggle(_ drivertest.T, d driver.Driver, n int) (deliver func() bool) {
	return h.proxies(d).Straggle(n)
}

// Deafen loses the messages of subscriptions.
func (h *Harness) Deafen(_ drivertest.T, d driver.Driver) (heal func()) { return h.proxies(d).Deafen() }

// Calls counts the requests of the driver.
func (h *Harness) Calls(d driver.Driver) int {
	calls := h.proxies(d).Calls()
	if h.store.Together {
		return slices.Max(calls)
	}
	sum := 0
	for _, n := range calls {
		sum += n
	}
	return sum
}

// Budget is the store's.
func (h *Harness) Budget() drivertest.Budget { return h.store.Budget }

// Cannot says what no store in Redis can do.
func (h *Harness) Cannot(law string) string {
	return "a Redis knows no sessions that it could end: " + law + " is tried without"
}

// Freeze stops a [worker.Worker].
func (h *Harness) Freeze(t drivertest.T, name string) (thaw func()) {
	w := worker.Start(t, h.store.URL, name, h.store.TTL)
	w.Stop(t)
	return w.Kill
}

// Try tries the laws whose names begin like these, each of which must be one.
func Try(t *testing.T, names []string, newHarness func(t *testing.T) drivertest.Harness) {
	t.Helper()
	tried := 0
	for _, law := range drivertest.Laws() {
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(law.Name, name) }) {
			tried++
			t.Run(law.Name, func(t *testing.T) { law.Try(t, newHarness(t)) })
		}
	}
	if tried != len(names) {
		t.Errorf("%d laws tried, want the %d that begin with %q", tried, len(names), names)
	}
}
