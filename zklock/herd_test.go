package zklock_test

import (
	"context"
	"encoding/binary"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
	"github.com/interlock-go/interlock/internal/zk"
	"github.com/interlock-go/interlock/zklock"
)

// ear counts what the servers tell by themselves, over all connections that it makes.
type ear struct{ told atomic.Int64 }

func (e *ear) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	return &heard{Conn: c, ear: e, greets: true}, err
}

// heard is a connection whose answers are looked at.
type heard struct {
	net.Conn
	ear    *ear
	greets bool // the next answer opens the session
	rest   []byte
}

func (h *heard) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	const head, event = 4, -1
	for h.rest = append(h.rest, b[:n]...); len(h.rest) >= head; h.greets = false {
		size := head + int(binary.BigEndian.Uint32(h.rest))
		if len(h.rest) < size {
			break
		}
		if !h.greets && int32(binary.BigEndian.Uint32(h.rest[head:])) == event { //nolint:gosec // it is signed
			h.ear.told.Add(1)
		}
		h.rest = h.rest[size:]
	}
	return n, err
}

// Of many clients that wait a release tells one. Of a lock whose waiters all watch the parent, as
// the first recipes did, it tells every one of them.
func TestAReleaseTellsOneAndNoHerd(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	const crowd = 40
	releases := map[string]func(t *testing.T, e *ear){
		"ours": func(t *testing.T, e *ear) {
			t.Helper()
			holder, _, _, _ := opened(t, server)
			holds := storetest.Mutex("ours")
			storetest.Asks(t, holder, holds, true)
			d, err := zklock.New(within(t), []string{server.Addr()}, &zklock.Options{Dial: e.Dial})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close(context.Background()) })
			var all []driver.Session
			var first driver.Claim
			for range crowd {
				s, err := d.Open(within(t), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				c := storetest.Mutex("ours")
				if storetest.Asks(t, s, c, false); len(all) == 0 {
					first = c
				}
				all = append(all, s)
			}
			storetest.Leaves(t, holder, holds, true)
			storetest.Awaits(t, all[0], first)
			for _, s := range all {
				renews(t, s) // behind what was told before
			}
		},
		"the parent": func(t *testing.T, e *ear) {
			t.Helper()
			hand := byHand(t, server)
			holds := zk.Create("/herd/lock-", nil, zk.EphemeralSequential, zk.Anyone)
			do(t, hand, zk.Create("/herd", nil, zk.Container, zk.Anyone), holds)
			var all []*zk.Client
			for range crowd {
				c, err := zk.Dial(within(t), zk.Options{Addrs: []string{server.Addr()}, Timeout: time.Minute, Dial: e.Dial})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close(context.Background()) })
				do(t, c, zk.Create("/herd/lock-", nil, zk.EphemeralSequential, zk.Anyone))
				all = append(all, c)
			}
			for _, c := range all {
				do(t, c, zk.Children("/herd", true))
			}
			do(t, hand, zk.Delete(holds.Path, -1))
			for _, c := range all {
				do(t, c, zk.Sync("/herd"))
			}
		},
	}
	for who, want := range map[string]int64{"ours": 1, "the parent": crowd} {
		t.Run(who, func(t *testing.T) {
			var e ear
			if releases[who](t, &e); e.told.Load() != want {
				t.Errorf("a release tells %d of %d who wait, want %d", e.told.Load(), crowd, want)
			}
		})
	}
}
