package etcdlock_test

import (
	"context"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/etcdlock"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/worker"
)

func TestMain(m *testing.M) {
	worker.Work()
	m.Run()
}

func TestConformance(t *testing.T) {
	t.Parallel()
	h := &harness{server: servertest.Etcd(t)}
	drivertest.Run(t, func(*testing.T) drivertest.Harness { return h.again() })
}

// harness is a server for the conformance suite. Each driver has a client of its own over a wire of
// its own.
type harness struct {
	server *servertest.Server
	prefix string

	mu   sync.Mutex
	ways map[driver.Driver]*way
}

var harnesses atomic.Int64

// again is the same server under another prefix.
func (h *harness) again() *harness {
	return &harness{server: h.server, prefix: fmt.Sprintf("suite/%d/", harnesses.Add(1)), ways: map[driver.Driver]*way{}}
}

// Prefix is one that no other harness of the process has.
func (h *harness) Prefix() string { return h.prefix }

// TTL is the shortest that etcd gives.
func (h *harness) TTL() time.Duration { return 2 * time.Second }

// Driver makes one over a client that a program has.
func (h *harness) Driver(t drivertest.T) driver.Driver {
	t.Helper()
	w := newWay(t, h.server.Addr())
	d, err := etcdlock.New(context.Background(), w.client, nil)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ways[d] = w
	return d
}

func (h *harness) way(d driver.Driver) *way {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ways[d]
}

// Kill cuts the driver off for good.
func (h *harness) Kill(_ drivertest.T, d driver.Driver) {
	h.way(d).wire.Refuse()
	h.way(d).wire.Cut()
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
func (h *harness) Stall(_ drivertest.T, d driver.Driver, which drivertest.Way) (heal func()) {
	if which == drivertest.Replies {
		return h.way(d).wire.Stall(wire.Replies)
	}
	return h.way(d).wire.Stall(wire.Both)
}

// Straggle holds a request; the server answers requests of one connection in any order.
func (h *harness) Straggle(_ drivertest.T, d driver.Driver, n int) (deliver func() bool) {
	return h.way(d).hold(n)
}

// Deafen loses what watches tell.
func (h *harness) Deafen(_ drivertest.T, d driver.Driver) (heal func()) {
	h.way(d).deaf.Store(true)
	return func() { h.way(d).deaf.Store(false) }
}

// Calls counts requests, the creation of watches and the renewals of leases among them.
func (h *harness) Calls(d driver.Driver) int { return int(h.way(d).calls.Load()) }

// Budget is that of the contract.
func (h *harness) Budget() drivertest.Budget {
	return drivertest.Budget{Acquire: 1, Release: 1, Handoff: 1}
}

// End revokes the session's lease, as an operator does.
func (h *harness) End(t drivertest.T, _ driver.Driver, s driver.Spec) {
	t.Helper()
	c := client(t, h.server.Addr())
	r, err := c.Get(context.Background(), "interlock:sessions/", clientv3.WithPrefix())
	if err != nil {
		t.Fatalf("end: %v", err)
	}
	for _, kv := range r.Kvs {
		if strings.Contains(string(kv.Value), `"id":"`+driver.PublicID(s.ID)+`"`) {
			if _, err := c.Revoke(context.Background(), clientv3.LeaseID(kv.Lease)); err != nil {
				t.Fatalf("end: %v", err)
			}
			return
		}
	}
	t.Fatalf("end: no session %s", driver.PublicID(s.ID))
}

// Freeze stops another process.
func (h *harness) Freeze(t drivertest.T, name string) (thaw func()) {
	t.Helper()
	w := worker.Start(t, h.server.URL(), name, h.TTL())
	w.Stop(t)
	return w.Kill
}

// client is one without any way between.
func client(t drivertest.T, addrs ...string) *clientv3.Client {
	t.Helper()
	u, err := url.Parse("etcd://" + strings.Join(addrs, ","))
	if err != nil {
		t.Fatalf("client: %v", err)
	}
	config, _, err := etcdlock.ParseURL(u)
	if err != nil {
		t.Fatalf("client: %v", err)
	}
	c, err := clientv3.New(config)
	if err != nil {
		t.Fatalf("client: %v", err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// way is what is between a client and its server: a wire, and what sees requests and events before
// they are bytes.
type way struct {
	client *clientv3.Client
	wire   *wire.Wire
	calls  atomic.Int64
	late   atomic.Int64 // requests that were held, delivered and answered
	news   atomic.Int64 // messages of watches that have events
	keys   atomic.Int64 // in answers of transactions
	deaf   atomic.Bool

	mu      sync.Mutex
	held    *held
	methods []string // of what was asked since the last forget
}

// requests are what was asked since the last forget, without renewals of leases.
func (w *way) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.methods), func(m string) bool { return m == "/etcdserverpb.Lease/LeaseKeepAlive" })
}

func (w *way) count(method string) (n int) {
	for _, m := range w.requests() {
		if m == method {
			n++
		}
	}
	return n
}

func (w *way) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.methods = nil
}

// asks counts one.
func (w *way) asks(method string) {
	w.calls.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.methods = append(w.methods, method)
}

// held is a request that is to be held, or is.
type held struct {
	after   int
	met     bool
	deliver chan struct{}
}

// newWay is the way to a server, or to several members, of which the first is behind the wire.
func newWay(t drivertest.T, addr string, others ...string) *way {
	t.Helper()
	w := &way{}
	var err error
	if w.wire, err = wire.Listen(context.Background(), addr); err != nil {
		t.Fatalf("wire: %v", err)
	}
	t.Cleanup(w.wire.Close)
	config, _, err := etcdlock.ParseURL(&url.URL{Scheme: "etcd", Host: w.wire.Addr()})
	if err != nil {
		t.Fatalf("client: %v", err)
	}
	config.Endpoints = append(config.Endpoints, others...)
	config.DialOptions = append(config.DialOptions, grpc.WithChainUnaryInterceptor(w.request), grpc.WithChainStreamInterceptor(w.stream))
	if w.client, err = clientv3.New(config); err != nil {
		t.Fatalf("client: %v", err)
	}
	t.Cleanup(func() { _ = w.client.Close() })
	return w
}

// hold lets n requests pass and holds the next.
func (w *way) hold(n int) (deliver func() bool) {
	h := &held{after: n, deliver: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = h
	return func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.held == h {
			w.held = nil
		}
		select {
		case <-h.deliver:
		default:
			close(h.deliver)
		}
		return h.met
	}
}

// met reports whether no request is still to be held.
func (w *way) met() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held == nil
}

// request counts, and holds what is to be held: it is sent when it is delivered, whatever has
// become of its caller.
func (w *way) request(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	w.asks(method)
	w.mu.Lock()
	h := w.held
	if h != nil {
		if h.after--; h.after >= 0 {
			h = nil
		} else {
			h.met, w.held = true, nil
		}
	}
	w.mu.Unlock()
	if h == nil {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if r, is := reply.(*etcdserverpb.TxnResponse); is {
			for _, op := range r.Responses {
				w.keys.Add(int64(len(op.GetResponseRange().GetKvs())))
			}
		}
		return err
	}
	answer, done := reflect.New(reflect.TypeOf(reply).Elem()), make(chan error, 1)
	go func() {
		<-h.deliver
		err := invoke(context.WithoutCancel(ctx), method, req, answer.Interface(), cc)
		w.late.Add(1)
		done <- err
	}()
	select {
	case err := <-done:
		reflect.ValueOf(reply).Elem().Set(answer.Elem())
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *way) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := streamer(ctx, desc, cc, method, opts...)
	return stream{s, w, method}, err
}

// stream counts what is sent, and loses events of one who is deaf.
type stream struct {
	grpc.ClientStream
	way    *way
	method string
}

func (s stream) SendMsg(m any) error {
	s.way.asks(s.method)
	return s.ClientStream.SendMsg(m)
}

func (s stream) RecvMsg(m any) error {
	for {
		err := s.ClientStream.RecvMsg(m)
		if r, watch := m.(*etcdserverpb.WatchResponse); err != nil || !watch || len(r.Events) == 0 {
			return err
		}
		s.way.news.Add(1)
		if !s.way.deaf.Load() {
			return err
		}
		*m.(*etcdserverpb.WatchResponse) = etcdserverpb.WatchResponse{}
	}
}
