package redislock_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/wire"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redisconn/goredis"
	"github.com/interlock-go/interlock/redislock"
)

// durable are the arguments of a server that keeps locks over a restart.
var durable = []string{"--appendonly", "yes", "--appendfsync", "always"}

// opening makes a driver to the server at addr, with a client of its own.
type opening func(t drivertest.T, addr string) driver.Driver

// byURL is the client that redislock makes itself.
func byURL(t drivertest.T, addr string) driver.Driver {
	d, err := driver.OpenURL(context.Background(), "redis://"+addr)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return d
}

func byRueidis(t drivertest.T, addr string) driver.Driver {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(client.Close)
	return over(t, redisconn.Rueidis(client))
}

func byGoRedis(t drivertest.T, addr string) driver.Driver {
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	conn, err := goredis.Conn(client)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return over(t, conn)
}

func over(t drivertest.T, conn redisconn.Conn) driver.Driver {
	d, err := redislock.New(context.Background(), conn, nil)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return d
}

// harness is one Redis for the conformance suite. Each driver has a wire of its own to it.
type harness struct {
	t      *testing.T
	server *servertest.Server
	open   opening
	prefix string

	mu    sync.Mutex
	wires map[driver.Driver]*line
}

// line is the wire of one driver.
type line struct {
	*wire.Wire
	calls atomic.Int64
}

var harnesses atomic.Int64

func newHarness(t *testing.T, server *servertest.Server, open opening) *harness {
	t.Helper()
	return &harness{
		t: t, server: server, open: open, wires: map[driver.Driver]*line{},
		prefix: fmt.Sprintf("suite/%d/", harnesses.Add(1)),
	}
}

func (h *harness) Prefix() string     { return h.prefix }
func (h *harness) TTL() time.Duration { return time.Second }

func (h *harness) Driver(t drivertest.T) driver.Driver {
	w := &line{Wire: wire.New(h.t, h.server.Addr())}
	w.Filter(wire.Requests, func(frame []byte) bool {
		if !overhead(frame) {
			w.calls.Add(1)
		}
		return true
	})
	d := h.open(t, w.Addr())
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wires[d] = w
	return d
}

// overhead reports whether a request is the client's own: it greets a server and asks whether it lives.
func overhead(frame []byte) bool {
	for _, word := range []string{"HELLO", "CLIENT", "PING", "ping", "hello", "client"} {
		if bytes.Contains(frame[:min(len(frame), 24)], []byte(word)) {
			return true
		}
	}
	return false
}

func (h *harness) wire(d driver.Driver) *line {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.wires[d]
}

// Kill cuts the wire for good.
func (h *harness) Kill(_ drivertest.T, d driver.Driver) {
	w := h.wire(d)
	w.Refuse()
	w.Cut()
}

func (h *harness) Restart(t drivertest.T) {
	if err := h.server.Restart(context.Background()); err != nil {
		t.Fatalf("restart: %v", err)
	}
}

func (h *harness) Stall(_ drivertest.T, d driver.Driver, way drivertest.Way) (heal func()) {
	if way == drivertest.Replies {
		return h.wire(d).Stall(wire.Replies)
	}
	return h.wire(d).Stall(wire.Both)
}

// Deafen loses the messages of subscriptions.
func (h *harness) Deafen(_ drivertest.T, d driver.Driver) (heal func()) {
	w := h.wire(d)
	w.Filter(wire.Replies, func(frame []byte) bool {
		return !bytes.Contains(frame[:min(len(frame), 20)], []byte("message"))
	})
	return func() { w.Filter(wire.Replies, nil) }
}

func (h *harness) Calls(d driver.Driver) int { return int(h.wire(d).calls.Load()) }

func (h *harness) Budget() drivertest.Budget {
	return drivertest.Budget{Acquire: 1, Release: 1, Handoff: 1}
}

func (h *harness) Cannot(law string) string {
	return "a Redis knows no sessions that it could end: " + law + " is tried without"
}

func (h *harness) Freeze(t drivertest.T, name string) (thaw func()) {
	w := startWorker(t, "redis://"+h.server.Addr(), name)
	w.stop(t)
	return sync.OnceFunc(w.kill)
}

func TestConformanceByURL(t *testing.T)     { conform(t, byURL) }
func TestConformanceByRueidis(t *testing.T) { conform(t, byRueidis) }
func TestConformanceByGoRedis(t *testing.T) { conform(t, byGoRedis) }

func conform(t *testing.T, open opening) {
	t.Helper()
	t.Parallel()
	drivertest.Run(t, func(t *testing.T) drivertest.Harness {
		return newHarness(t, servertest.Redis(t, durable...), open)
	})
}
