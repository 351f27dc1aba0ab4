package mysqllock_test

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/worker"
	"github.com/interlock-go/interlock/mysqllock"
)

func TestMain(m *testing.M) {
	worker.Work()
	m.Run()
}

func TestConformance(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	drivertest.Run(t, func(*testing.T) drivertest.Harness { return h.again() })
}

// harness is a server for the conformance suite. Each driver is over a wire of its own.
type harness struct {
	server place
	prefix string

	mu    *sync.Mutex
	lines map[driver.Driver]*line
}

// line is the wire of one driver.
type line struct {
	*wire.Wire
	calls atomic.Int64
	deaf  atomic.Bool // what is found behind gates gets lost
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
	s := servertest.MariaDB(t, args...)
	if err := mysqllock.Migrate(t.Context(), pool(t, s.URL()), nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// pool is the user's own.
func pool(t drivertest.T, url string) *sql.DB {
	t.Helper()
	c, _, err := mysqllock.ParseURL(url)
	if err != nil {
		t.Fatalf("%v", err)
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatalf("%v", err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
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

// opened is what a claim is told behind a gate that is open.
var opened = regexp.MustCompile(`2 \d{16} -1 f [\w-]{22}`)

// Deafen loses that.
func (h *harness) Deafen(_ drivertest.T, d driver.Driver) (heal func()) {
	h.line(d).deaf.Store(true)
	return func() { h.line(d).deaf.Store(false) }
}

// look counts queries. Each begins a packet, since a connection has one under way: its length in three bytes, the number 0, and what it is.
func (l *line) look(way wire.Direction, packet []byte) bool {
	if way == wire.Replies {
		return l.deaf.Load() && opened.Match(packet)
	}
	if way == wire.Requests && len(packet) > 4 && packet[3] == 0 && packet[4] == 3 {
		l.calls.Add(1)
	}
	return false
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

// Calls counts queries.
func (h *harness) Calls(d driver.Driver) int { return int(h.line(d).calls.Load()) }

// Budget: a handoff opens a gate, and locks new ones now and then; of permits, where who waits polls, a look may be under way, and a slow
// release lets some pass.
func (h *harness) Budget() drivertest.Budget {
	return drivertest.Budget{Acquire: 1, Release: 1, Handoff: 6}
}

// End ends a session as an operator does.
func (h *harness) End(t drivertest.T, _ driver.Driver, s driver.Spec) {
	t.Helper()
	if _, err := pool(t, h.server.URL()).ExecContext(context.Background(), "call interlock_finish('"+s.ID+"', null)"); err != nil {
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
