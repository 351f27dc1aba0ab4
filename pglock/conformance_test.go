package pglock_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/worker"
	"github.com/interlock-go/interlock/pglock"
)

func TestMain(m *testing.M) {
	worker.Work()
	m.Run()
}

// The laws are tried on two servers at once: some of them restart theirs.
func TestConformance(t *testing.T) { tryThese(t, drivertest.Laws()[:9]) }

func TestConformanceFromLaw10(t *testing.T) { tryThese(t, drivertest.Laws()[9:]) }

func tryThese(t *testing.T, laws []drivertest.Law) {
	t.Helper()
	t.Parallel()
	h := newHarness(t, "-c", "fsync=on")
	drivertest.Run(t, func(*testing.T) drivertest.Harness { return h.again() }, laws...)
}

// harness is a server for the conformance suite. Each driver is over a wire of its own.
type harness struct {
	server *servertest.Server
	prefix string

	mu    *sync.Mutex
	lines map[driver.Driver]*line
}

// line is the wire of one driver.
type line struct {
	*wire.Wire
	calls atomic.Int64
	deaf  atomic.Bool
}

var harnesses atomic.Int64

func newHarness(t *testing.T, args ...string) *harness {
	t.Helper()
	h := &harness{server: migrated(t, args...)}
	return h.again()
}

// again is the same server under another prefix.
func (h *harness) again() *harness {
	return &harness{server: h.server, prefix: fmt.Sprintf("suite/%d/", harnesses.Add(1)), mu: new(sync.Mutex), lines: map[driver.Driver]*line{}}
}

// migrated starts a server that has the tables.
func migrated(t *testing.T, args ...string) *servertest.Server {
	t.Helper()
	s := servertest.Postgres(t, args...)
	if err := pglock.Migrate(t.Context(), pool(t, s.URL()), nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// pool is the user's own.
func pool(t drivertest.T, url string) *pgxpool.Pool {
	t.Helper()
	p, err := pgxpool.New(context.Background(), url)
	if err != nil {
		t.Fatalf("pool: %v", err)
	}
	t.Cleanup(p.Close)
	return p
}

// Prefix is one that no other harness of the process has.
func (h *harness) Prefix() string { return h.prefix }

// TTL is usual.
func (h *harness) TTL() time.Duration { return time.Second }

// Driver opens the store by its URL, over a wire.
func (h *harness) Driver(t drivertest.T) driver.Driver {
	t.Helper()
	d, l := h.open(t, h.server.URL())
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines[d] = l
	return d
}

func (h *harness) open(t drivertest.T, url string) (driver.Driver, *line) {
	t.Helper()
	l := h.wire(t)
	d, err := driver.OpenURL(context.Background(), strings.Replace(url, h.server.Addr(), l.Addr(), 1))
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return d, l
}

// wire is a way to the server.
func (h *harness) wire(t drivertest.T) *line {
	t.Helper()
	w, err := wire.Listen(context.Background(), h.server.Addr())
	if err != nil {
		t.Fatalf("wire: %v", err)
	}
	t.Cleanup(w.Close)
	l := &line{Wire: w}
	l.Drop(l.look)
	return l
}

// look counts queries, those of what is prepared too, and loses notifications of one who is deaf. Each begins a packet: a connection has one query under way, and that
// over which notifications come has none. After the letter comes a length, whose first byte tells it from the rest of a long one.
func (l *line) look(way wire.Direction, packet []byte) bool {
	if way == wire.Requests {
		if strings.IndexByte("QPB", packet[0]) >= 0 && packet[1] == 0 && !bytes.Contains(packet, []byte("-- ping")) {
			l.calls.Add(1)
		}
		return false
	}
	return packet[0] == 'A' && l.deaf.Load()
}

func (h *harness) line(d driver.Driver) *line {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lines[d]
}

// Kill cuts the driver off for good.
func (h *harness) Kill(_ drivertest.T, d driver.Driver) {
	h.line(d).Refuse()
	h.line(d).Cut()
}

// Restart restarts the server.
func (h *harness) Restart(t drivertest.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := h.server.Restart(ctx); err != nil {
		t.Fatalf("restart: %v", err)
	}
}

// Stall holds what the driver and the server send.
func (h *harness) Stall(_ drivertest.T, d driver.Driver, way drivertest.Way) (heal func()) {
	if way == drivertest.Replies {
		return h.line(d).Stall(wire.Replies)
	}
	return h.line(d).Stall(wire.Both)
}

// Straggle holds a query that others overtake.
func (h *harness) Straggle(_ drivertest.T, d driver.Driver, n int) (deliver func() bool) {
	l := h.line(d)
	last := l.calls.Load() + int64(n)
	return l.Hold(func([]byte) bool { return l.calls.Load() > last })
}

// Deafen loses what comes by LISTEN.
func (h *harness) Deafen(_ drivertest.T, d driver.Driver) (heal func()) {
	h.line(d).deaf.Store(true)
	return func() { h.line(d).deaf.Store(false) }
}

// Calls counts queries.
func (h *harness) Calls(d driver.Driver) int { return int(h.line(d).calls.Load()) }

// Budget is that of the contract.
func (h *harness) Budget() drivertest.Budget {
	return drivertest.Budget{Acquire: 1, Release: 1, Handoff: 1}
}

// End ends a session as an operator does.
func (h *harness) End(t drivertest.T, _ driver.Driver, s driver.Spec) {
	t.Helper()
	p := pool(t, h.server.URL())
	if _, err := p.Exec(context.Background(), "select interlock.finish($1)", s.ID); err != nil {
		t.Fatalf("end: %v", err)
	}
}

// Freeze stops another process.
func (h *harness) Freeze(t drivertest.T, name string) (thaw func()) {
	t.Helper()
	w := worker.Start(t, h.server.URL(), name, h.TTL())
	w.Stop(t)
	return w.Kill
}
