package zklock_test

import (
	"context"
	"encoding/binary"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
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
	drivertest.Run(t, func(*testing.T) drivertest.Harness { return newHarness(s, "", budget) }, laws...)
}

// budget is that of a semaphore which nobody has used for a minute: its nodes are missing, and
// made. See TestFlights.
var budget = drivertest.Budget{Acquire: 12, Release: 1, Handoff: 5}

func TestConformanceOfOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("two more conformances: make proof")
	}
	t.Parallel()
	reads := budget // the token, beside
	reads.Acquire++
	reads.Handoff++
	for _, params := range []string{"?mutex=semaphore", "?layout=kazoo"} {
		t.Run(params, func(t *testing.T) {
			t.Parallel()
			s := servertest.ZooKeeper(t)
			drivertest.Run(t, func(*testing.T) drivertest.Harness { return newHarness(s, params, reads) })
		})
	}
}

// harness is a server for the conformance suite.
type harness struct {
	*storetest.Harness
	server *servertest.Server
}

func newHarness(s *servertest.Server, params string, b drivertest.Budget) harness {
	return harness{storetest.NewHarness(storetest.Store{
		Server: s, URL: s.URL() + params, Requests: asked, TTL: 2 * time.Second, Budget: b, Cannot: cannot,
	}), s}
}

func cannot(law string) string {
	if strings.HasPrefix(law, "Law14") {
		return "what the server tells comes over the connection of the answers, in order, and is not lost while that lives"
	}
	return ""
}

// asked counts requests, and leaves out flights of nothing but reads that watch: half a second
// after a claim, and with a renewal, a session looks after all nodes that it holds, while the suite
// counts something else. TestFlights counts them.
func asked(packet []byte) int {
	requests, watching := requestsIn(packet)
	if watching == requests {
		return 0
	}
	return requests
}

// End takes a session over and closes it, as an operator does, while its client is cut off, which
// would take it back.
func (h harness) End(t drivertest.T, d driver.Driver, s driver.Spec) {
	t.Helper()
	session, password := zklock.SessionOf(d, s.ID)
	w := h.Wires(d)[0]
	w.Refuse()
	w.Cut()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	twin, err := zk.Dial(ctx, zk.Options{Addrs: []string{h.server.Addr()}, Timeout: time.Minute, Session: session, Password: password})
	if err == nil {
		err = twin.Close(ctx)
	}
	if err == nil {
		err = w.Accept()
	}
	if err != nil {
		t.Fatalf("end a session: %v", err)
	}
}

// line is the wire of one driver.
type line struct {
	*wire.Wire
	calls atomic.Int64
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
	l.Drop(func(way wire.Direction, packet []byte) bool {
		if way == wire.Requests {
			requests, _ := requestsIn(packet)
			l.calls.Add(int64(requests))
		}
		return false
	})
	d, err := driver.OpenURL(context.Background(), "zk://"+w.Addr()+path)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return d, l
}

// requestsIn counts the requests of a flight, and of these the reads that watch. The greeting of a
// connection is none.
func requestsIn(packet []byte) (requests, watching int) {
	const header, read = 12, 4
	for len(packet) >= header {
		frame := packet[:min(len(packet), 4+int(binary.BigEndian.Uint32(packet)))]
		if len(frame) < header { // it begins in the middle of one
			break
		}
		if xid := binary.BigEndian.Uint32(frame[4:]); xid != 0 {
			requests++
			if binary.BigEndian.Uint32(frame[8:]) == read && frame[len(frame)-1] == 1 {
				watching++
			}
		}
		packet = packet[len(frame):]
	}
	return requests, watching
}
