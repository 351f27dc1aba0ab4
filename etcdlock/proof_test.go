package etcdlock_test

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
)

// newer is a server of that version, which is built for this.
func newer(t *testing.T, version string, args ...string) *servertest.Server {
	t.Helper()
	if testing.Short() {
		t.Skip("a server is built: make proof")
	}
	program := filepath.Join(t.TempDir(), "etcd-"+version)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = filepath.Join("testdata", "server-"+version)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	server, err := servertest.StartEtcd(t.Context(), servertest.Options{Program: program, Args: args})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}

var versions = []string{"3.5", "3.6"}

// The laws hold on newer servers, too, and foreign clients and ours exclude each other there.
func TestNewerServers(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			h := &harness{server: newer(t, version)}
			foreignKeepOursOut(t, h.server)
			oursKeepForeignOut(t, h.server)
			drivertest.Run(t, func(*testing.T) drivertest.Harness { return h.again() })
		})
	}
}

// A token that expires under a hold and a wait, as where nobody has asked anything for long, is
// replaced by the next request.
func TestTokenExpiresUnderHoldAndWait(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			server := newer(t, version, "--auth-token-ttl=1")
			guard(t, server)
			d, err := driver.OpenURL(t.Context(), "etcd://app:secret@"+server.Addr()+"?namespace=locks/")
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close(context.Background())
			a, b := session(t, d), session(t, d)
			first, second := mutex("a"), mutex("a")
			hold(t, a, first)
			queue(t, b, second)
			told := begin(t, b, second)
			<-time.After(5 * time.Second) // the token goes 1 s after its last use, and is looked after once a second
			for _, s := range []driver.Session{a, b} {
				if r, err := s.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
					t.Fatalf("renew: %+v, %v", r, err)
				}
			}
			<-time.After(5 * time.Second)
			release(t, a, first)
			if g := <-told; !g.Held {
				await(t, b, second)
			}
			<-time.After(5 * time.Second)
			release(t, b, second)
		})
	}
}

// The leader is cut off from the other members, with who holds on its side: that one hears nothing
// good any more, and the next gets in on the other side, not before the first has ceased to trust
// its lease. When the members are together again the first is told that its session is over.
func TestLeaderIsCutOff(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("members are cut off: make proof")
	}
	wires := make([]*wire.Wire, 3)
	m, err := servertest.StartEtcds(t.Context(), 3, servertest.Options{Peers: func(i int, addr string) (string, error) {
		w, err := wire.Listen(context.Background(), addr)
		if err != nil {
			return "", err
		}
		t.Cleanup(w.Close)
		wires[i] = w
		return w.Addr(), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	admin := client(t, m.Addrs()...)
	leader := slices.Index(m.Members, leaderOf(t, admin, m))
	status, err := admin.Status(t.Context(), m.Members[leader].Addr())
	if err != nil {
		t.Fatal(err)
	}
	others := slices.Delete(slices.Clone(m.Addrs()), leader, leader+1)
	a := sessionOf(t, opened(t, client(t, m.Members[leader].Addr()), nil), 3*time.Second)
	b := session(t, opened(t, client(t, others...), nil))
	first, second := mutex("a"), mutex("a")
	g := hold(t, a, first)
	queue(t, b, second)
	told := begin(t, b, second)

	// What the leader sends names it; whatever is sent to it is for nobody.
	name := []byte("X-Server-From: " + strconv.FormatUint(status.Header.MemberId, 16))
	for i, w := range wires {
		w.Drop(func(_ wire.Direction, packet []byte) bool { return i == leader || bytes.Contains(packet, name) })
	}
	for _, w := range wires {
		w.Cut()
	}
	var trusted time.Time
	var next driver.Grant
	for next = (driver.Grant{}); !next.Held; {
		started := time.Now()
		if r, err := a.Renew(t.Context()); err == nil {
			trusted = started.Add(r.Valid)
		} else if errors.Is(err, driver.ErrSessionLost) {
			t.Fatalf("who is cut off is told more than it can know: %v", err)
		}
		select {
		case next = <-told:
			if !next.Held {
				next = await(t, b, second)
			}
		default:
		}
	}
	if held := time.Now(); held.Before(trusted) || next.Fence <= g.Fence {
		t.Errorf("the next holds with token %d after %d, %v before the first has ceased to trust its lease", next.Fence, g.Fence, trusted.Sub(held))
	}
	for _, w := range wires {
		w.Drop(nil)
		w.Cut()
	}
	eventually(t, "the first is told", func() bool {
		_, err := a.Renew(t.Context())
		return errors.Is(err, driver.ErrSessionLost)
	})
	release(t, b, second)
}
