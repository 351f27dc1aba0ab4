package redislock_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/redislink"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redislock"
)

// stage is where races are run: one Redis or a Cluster, and a client that looks behind the back of
// ours.
type stage struct {
	nodes   []*servertest.Server
	cluster *servertest.Cluster // nil where there is one Redis
	raw     redis.UniversalClient
}

func newStage(t *testing.T, server *servertest.Server) *stage {
	t.Helper()
	s := &stage{nodes: []*servertest.Server{server}}
	s.raw = redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = s.raw.Close() })
	return s
}

func newClusterStage(t *testing.T, cluster *servertest.Cluster) *stage {
	t.Helper()
	s := &stage{nodes: cluster.Nodes, cluster: cluster}
	s.raw = redis.NewClusterClient(&redis.ClusterOptions{Addrs: s.addrs()})
	t.Cleanup(func() { _ = s.raw.Close() })
	return s
}

func (s *stage) addrs() []string {
	var addrs []string
	for _, node := range s.nodes {
		addrs = append(addrs, node.Addr())
	}
	return addrs
}

var names atomic.Int64

// name is a name that no other test has.
func (s *stage) name(what string) string { return fmt.Sprintf("%s/%d", what, names.Add(1)) }

// cable is the wires of one actor that go to all servers and serve one purpose.
type cable struct {
	wires map[string]*wire.Wire // by server
}

func (s *stage) newCable(t *testing.T) *cable {
	t.Helper()
	c := &cable{wires: map[string]*wire.Wire{}}
	for _, addr := range s.addrs() {
		c.wires[addr] = wire.New(t, addr)
	}
	return c
}

func (c *cable) each(f func(*wire.Wire)) {
	for _, w := range c.wires {
		f(w)
	}
}

func (c *cable) stall(d wire.Direction) (heal func()) {
	var heals []func()
	c.each(func(w *wire.Wire) { heals = append(heals, w.Stall(d)) })
	return sync.OnceFunc(func() {
		for _, heal := range heals {
			heal()
		}
	})
}

// cut ends all connections and lets none be made until mend is called.
func (c *cable) cut(t *testing.T) (mend func()) {
	t.Helper()
	c.each((*wire.Wire).Refuse)
	c.each((*wire.Wire).Cut)
	return func() {
		c.each(func(w *wire.Wire) {
			if err := w.Accept(); err != nil {
				t.Error(err)
			}
		})
	}
}

func (c *cable) count() (all wire.Counts) {
	c.each(func(w *wire.Wire) {
		n := w.Count()
		all.Open += n.Open
		all.Requests.Packets += n.Requests.Packets
		all.Requests.Held += n.Requests.Held
		all.Replies.Packets += n.Replies.Packets
		all.Replies.Held += n.Replies.Held
	})
	return all
}

// calls counts the requests that are not the client's own.
func (c *cable) calls() *atomic.Int64 {
	n := new(atomic.Int64)
	c.each(func(w *wire.Wire) {
		w.Filter(wire.Requests, func(frame []byte) bool {
			if !redistest.Overhead(frame) {
				n.Add(1)
			}
			return true
		})
	})
	return n
}

// connect makes a client whose connections for commands go over first and whose later ones go over
// rest: its subscriptions, and connections that replace lost ones.
func (s *stage) connect(t *testing.T, first, rest *cable, o redislock.Options) (*redislock.Driver, rueidis.Client) {
	t.Helper()
	over := new(atomic.Pointer[cable])
	over.Store(first)
	o.Logger = slog.New(slog.DiscardHandler)
	if o.Timeout == 0 {
		o.Timeout = prompt
	}
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: s.addrs(), DisableRetry: true, DisableCache: true, PipelineMultiplex: -1, ForceSingleClient: s.cluster == nil,
		ReadBufferEachConn: 1 << 14, WriteBufferEachConn: 1 << 14, RingScaleEachConn: redislink.RingScale, // many stand on one stage
		ConnWriteTimeout: o.Timeout, Dialer: net.Dialer{KeepAlive: o.Timeout},
		DialCtxFn: func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			w := over.Load().wires[addr]
			if w == nil {
				return nil, fmt.Errorf("%s is no server of this stage", addr)
			}
			return d.DialContext(ctx, "tcp", w.Addr())
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	d, err := redislock.New(context.Background(), redisconn.Rueidis(client), &o)
	if err != nil {
		t.Fatal(err)
	}
	over.Store(rest) // New has asked every server something
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = d.Close(ctx) // its wires may be cut
	})
	return d, client
}

// until waits for what takes no TTL.
func until(t *testing.T, what string, met func() bool) {
	t.Helper()
	redistest.Until(t, prompt, "still not: "+what, met)
}

// prompt is for what has to wait for nobody's TTL, on a machine that has other things to do; and
// whatever happens in spite of that takes an age.
const (
	prompt = 30 * time.Second
	age    = 10 * time.Minute
)
