package redislock_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
)

// patient has a client of ours leave it to us to find a connection dead.
const patient = "?timeout=90s&keepalive=90s"

// patientRueidis is a user's client that takes longer for that than any lease lasts. Many use it,
// so that its connections have a reader and a writer in the background, as those of a program have.
func patientRueidis(t *testing.T, b *redistest.Proxies, addrs ...string) redisconn.Conn {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: addrs, DisableCache: true, ConnWriteTimeout: 90 * time.Second, PipelineMultiplex: -1, // no other to try by chance
		DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return b.Dial(ctx, "tcp", addr)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	for _, node := range client.Nodes() {
		if err := node.Do(t.Context(), node.B().Ping().Build()).Error(); err != nil { // a context that ends takes them
			t.Fatal(err)
		}
	}
	return redisconn.Rueidis(client)
}

// crowdOf has a session hold a mutex, a share and a permit, and so many mutexes more.
func crowdOf(t *testing.T, d driver.Driver, mutexes int) driver.Session {
	t.Helper()
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: ample})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	for i := range 3 + mutexes {
		c := driver.Claim{Name: fmt.Sprint("m", i), ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All}
		switch i {
		case 1:
			c.Kind, c.Weight = driver.Read, 1
		case 2:
			c.Kind, c.Weight, c.Limit = driver.Permit, 1, 3
		}
		if g, err := s.Acquire(t.Context(), c); err != nil || !g.Held {
			t.Fatalf("%+v, %v", g, err)
		}
	}
	return s
}

// A connection dies and nobody knows: bytes go in and none come out, and it does not end. One
// renewal is lost with it, and no lease, also where the client would wait for longer than leases
// last.
func TestOneSilentConnectionCostsNoLease(t *testing.T) {
	t.Parallel()
	for what, open := range map[string]func(t *testing.T, b *redistest.Proxies, addr string) redisconn.Conn{
		"by URL": func(t *testing.T, b *redistest.Proxies, addr string) redisconn.Conn {
			t.Helper()
			return redistest.Connect(t, b, "redis://"+addr+patient)
		},
		"rueidis": func(t *testing.T, b *redistest.Proxies, addr string) redisconn.Conn {
			t.Helper()
			return patientRueidis(t, b, addr)
		},
	} {
		for _, mutexes := range []int{0, 250} {
			t.Run(fmt.Sprintf("%s with %d claims", what, 3+mutexes), func(t *testing.T) {
				t.Parallel()
				server, b := servertest.Redis(t), redistest.NewProxies(t)
				s := crowdOf(t, over(t, open(t, b, server.Addr())), mutexes)
				redistest.TrySilentConnections(t, s, time.Second, b.To(server.Addr()))
			})
		}
	}
}

// On a Cluster it is one of several masters whose connection dies. What it has is not given up by
// the first renewal that it does not answer.
func TestCluster_OneSilentConnectionCostsNoLease(t *testing.T) {
	t.Parallel()
	c := servertest.RedisCluster(t, 3, 0)
	for what, open := range map[string]func(t *testing.T, b *redistest.Proxies) redisconn.Conn{
		"by URL": func(t *testing.T, b *redistest.Proxies) redisconn.Conn {
			t.Helper()
			return redistest.Connect(t, b, "redis+cluster://"+c.Nodes[0].Addr()+patient)
		},
		"rueidis": func(t *testing.T, b *redistest.Proxies) redisconn.Conn {
			t.Helper()
			return patientRueidis(t, b, c.Nodes[0].Addr())
		},
	} {
		t.Run(what, func(t *testing.T) {
			b := redistest.NewProxies(t)
			s := crowdOf(t, over(t, open(t, b)), 50)
			redistest.TrySilentConnections(t, s, time.Second, b.To(c.Nodes[1].Addr()))
		})
	}
}

// Whoever releases is back when its context ends, also where the connection that others share has
// to be made for it.
func TestAReleaseDoesNotWaitForANewConnection(t *testing.T) {
	t.Parallel()
	w := wire.New(t, servertest.Redis(t).Addr())
	redistest.TryReleaseWhileConnecting(t, redistest.Open(t, "redis://"+w.Addr()+patient), w)
}
