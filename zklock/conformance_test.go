package zklock_test

import (
	"context"
	"encoding/binary"
	"fmt"
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
	"github.com/interlock-go/interlock/internal/zk"
	"github.com/interlock-go/interlock/zklock"
)

func TestMain(m *testing.M) {
	worker.Work()
	m.Run()
}

// The laws are tried on four servers at once: some of them restart theirs.
func TestConformance(t *testing.T) { tryThese(t, drivertest.Laws()[:7]) }

func TestConformanceFromLaw08(t *testing.T) { tryThese(t, drivertest.Laws()[7:9]) }

func TestConformanceFromLaw10(t *testing.T) { tryThese(t, drivertest.Laws()[9:12]) }

func TestConformanceFromLaw13(t *testing.T) { tryThese(t, drivertest.Laws()[12:]) }

func tryThese(t *testing.T, laws []drivertest.Law) {
	t.Helper()
	t.Parallel()
	s := servertest.ZooKeeper(t)
	drivertest.Run(t, func(*testing.T) drivertest.Harness { return newHarness(s) }, laws...)
}

// harness is a server for the conformance suite. Each driver is over a wire of its own.
type harness struct {
	server *servertest.Server
	prefix string

	mu    sync.Mutex
	lines map[driver.Driver]*line
}

// line is the wire of one driver.
type line struct {
	*wire.Wire
	calls atomic.Int64
	looks atomic.Int64 // of these, in flights of nothing but reads that watch
}

var harnesses atomic.Int64

// newHarness has a prefix that no other one has.
func newHarness(s *servertest.Server) *harness {
	return &harness{server: s, prefix: fmt.Sprintf("suite/%d/", harnesses.Add(1)), lines: map[driver.Driver]*line{}}
}

// connect lays a wire to a server, and opens a driver over it.
func connect(t drivertest.T, s *servertest.Server, path string) (driver.Driver, *line) {
	t.Helper()
	w, err := wire.Listen(context.Background(), s.Addr())
	if err != nil {
		t.Fatalf("wire: %v", err)
	}
	t.Cleanup(w.Close)
	l := &line{Wire: w}
	l.Drop(l.count)
	d, err := driver.OpenURL(context.Background(), "zk://"+w.Addr()+path)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return d, l
}

// count counts requests, of which a flight has several. The greeting of a connection is none.
func (l *line) count(way wire.Direction, packet []byte) bool {
	const header, read = 12, 4
	requests, watching := 0, 0
	for way == wire.Requests && len(packet) >= header {
		frame := packet[:min(len(packet), 4+int(binary.BigEndian.Uint32(packet)))]
		if xid := binary.BigEndian.Uint32(frame[4:]); xid != 0 {
			requests++
			if binary.BigEndian.Uint32(frame[8:]) == read && frame[len(frame)-1] == 1 {
				watching++
			}
		}
		packet = packet[len(frame):]
	}
	l.calls.Add(int64(requests))
	if watching == requests {
		l.looks.Add(int64(requests))
	}
	return false
}

func (h *harness) Prefix() string     { return h.prefix }
func (h *harness) TTL() time.Duration { return 2 * time.Second }

func (h *harness) Driver(t drivertest.T) driver.Driver {
	t.Helper()
	d, l := connect(t, h.server, "")
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines[d] = l
	return d
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

// Straggle holds a request that others overtake.
func (h *harness) Straggle(_ drivertest.T, d driver.Driver, n int) (deliver func() bool) {
	l := h.line(d)
	last := l.calls.Load() + int64(n)
	return l.Hold(func([]byte) bool { return l.calls.Load() > last })
}

// Calls counts requests, and leaves out those that only watch: half a second after a claim, and with a renewal, a session looks after
// all nodes that it holds, while the suite counts something else. TestFlights counts them.
func (h *harness) Calls(d driver.Driver) int {
	l := h.line(d)
	return int(l.calls.Load() - l.looks.Load())
}

// Budget is that of a semaphore which nobody has used for a minute: its nodes are missing, and made. See TestFlights.
func (h *harness) Budget() drivertest.Budget {
	return drivertest.Budget{Acquire: 12, Release: 1, Handoff: 5}
}

// End ends a session as an operator does.
func (h *harness) End(t drivertest.T, d driver.Driver, s driver.Spec) {
	t.Helper()
	end(t, h.server, d, h.line(d), s.ID)
}

// end takes a session over and closes it, while its client is cut off, which would take it back.
func end(t drivertest.T, server *servertest.Server, d driver.Driver, l *line, id string) {
	t.Helper()
	session, password := zklock.SessionOf(d, id)
	l.Refuse()
	l.Cut()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	twin, err := zk.Dial(ctx, zk.Options{Addrs: []string{server.Addr()}, Timeout: time.Minute, Session: session, Password: password})
	if err == nil {
		err = twin.Close(ctx)
	}
	if err == nil {
		err = l.Accept()
	}
	if err != nil {
		t.Fatalf("end a session: %v", err)
	}
}

// Freeze stops another process.
func (h *harness) Freeze(t drivertest.T, name string) (thaw func()) {
	t.Helper()
	w := worker.Start(t, h.server.URL(), name, h.TTL())
	w.Stop(t)
	return w.Kill
}

func (h *harness) Cannot(law string) string {
	if strings.HasPrefix(law, "Law14") {
		return "what the server tells comes over the connection of the answers, in order, and is not lost while that lives"
	}
	return ""
}
