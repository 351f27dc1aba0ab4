package etcdlock_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/etcdlock"
	"github.com/interlock-go/interlock/internal/servertest"
)

// A session whose lease is gone says so, and lets nobody wait in it.
func TestE05_TheLeaseIsRevoked(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	c := client(t, server.Addr())
	w := newWay(t, server.Addr())
	a, b := session(t, opened(t, c, nil)), session(t, opened(t, w.client, nil))
	first, second := mutex("a"), mutex("a")
	hold(t, a, first)
	queue(t, b, second)
	told := waiting(t, w, b, second)
	r, err := c.Get(t.Context(), "a/", append(clientv3.WithLastCreate(), clientv3.WithPrefix())...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Revoke(t.Context(), clientv3.LeaseID(r.Kvs[0].Lease)); err != nil {
		t.Fatal(err)
	}
	if g := <-told; g.Held {
		t.Errorf("a claim whose lease is gone is held, with token %d", g.Fence)
	}
	for what, call := range map[string]func(s driver.Session) error{
		"a claim":   func(s driver.Session) error { _, err := s.Acquire(t.Context(), mutex("b")); return err },
		"a renewal": func(s driver.Session) error { _, err := s.Renew(t.Context()); return err },
	} {
		s := session(t, opened(t, c, nil))
		r, err := c.Get(t.Context(), "interlock:sessions/", append(clientv3.WithLastCreate(), clientv3.WithPrefix())...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Revoke(t.Context(), clientv3.LeaseID(r.Kvs[0].Lease)); err != nil {
			t.Fatal(err)
		}
		if err := call(s); !errors.Is(err, driver.ErrSessionLost) {
			t.Errorf("%s of a session whose lease was revoked is answered %v", what, err)
		}
	}
}

// Two claims of one session exclude each other.
func TestE06_TwoClaimsOfOneLease(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	s := session(t, opened(t, client(t, server.Addr()), nil))
	first, second := mutex("a"), mutex("a")
	hold(t, s, first)
	queue(t, s, second)
	if g := acquire(t, s, first); !g.Held {
		t.Error("the second claim of a session has taken the place of the first")
	}
	release(t, s, first)
	await(t, s, second)
}

// To release what was never held releases nobody.
func TestE07_ReleaseOfWhatWasNeverHeld(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	s := session(t, opened(t, client(t, server.Addr()), nil))
	c := mutex("a")
	hold(t, s, c)
	if held, err := s.Release(t.Context(), mutex("a")); held || err != nil {
		t.Errorf("a claim that was never there was held: %v, %v", held, err)
	}
	if _, err := s.Acquire(t.Context(), c); err != nil {
		t.Errorf("a Release of what was never held has released who holds: %v", err)
	}
	release(t, s, c)
}

// A session whose opening was given up leaves nothing, whenever its requests come.
func TestLateOpen(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	w := newWay(t, server.Addr())
	d := opened(t, w.client, patient)
	for n := range 2 { // the lease, and the session's key
		deliver := w.hold(n)
		briefly(t, w, func(ctx context.Context) error {
			_, err := d.Open(ctx, driver.Spec{ID: driver.NewID(), TTL: time.Hour})
			return err
		})
		if !deliver() {
			t.Fatal("nothing was held")
		}
		eventually(t, "the lease is revoked", func() bool {
			r, err := w.client.Leases(t.Context())
			return err == nil && w.count("/etcdserverpb.Lease/LeaseRevoke") > n && len(r.Leases) == 0
		})
	}
}

// A key of the session that nobody knows of is deleted by its next renewal; a claim whose key
// somebody has deleted is lost.
func TestRenewalComparesKeys(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	c := client(t, server.Addr())
	s := session(t, opened(t, c, nil))
	keeps, loses := mutex("keeps"), mutex("loses")
	hold(t, s, keeps)
	hold(t, s, loses)
	r, err := c.Get(t.Context(), "loses/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	lease := clientv3.LeaseID(r.Kvs[0].Lease)
	for _, key := range []string{"keeps/" + hex(lease) + "-1", "surplus/" + hex(lease)} {
		if _, err := c.Put(t.Context(), key, "il1{}", clientv3.WithLease(lease)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Put(t.Context(), "data/"+hex(lease+1), "", clientv3.WithLease(lease)); err != nil { // the program's own
		t.Fatal(err)
	}
	if _, err := c.Delete(t.Context(), string(r.Kvs[0].Key)); err != nil {
		t.Fatal(err)
	}
	renewal, err := s.Renew(t.Context())
	if err != nil || !slices.Equal(renewal.Lost, []driver.Loss{{ID: loses.ID, Err: driver.ErrGone}}) {
		t.Errorf("lost %v, %v, want %q", renewal.Lost, err, loses.ID)
	}
	want := []string{"data/" + hex(lease+1), "interlock:sessions/" + hex(lease), "keeps/" + hex(lease)}
	if all := keys(t, c); !slices.Equal(all, want) {
		t.Errorf("keys %q, want %q", all, want)
	}
	if _, err := s.Acquire(t.Context(), loses); !errors.Is(err, driver.ErrGone) {
		t.Errorf("what is lost is asked for: %v", err)
	}
}

// A claim is broken by who has its key under another name, behind another namespace.
func TestBrokenFromAnotherNamespace(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	c := client(t, server.Addr())
	s := session(t, opened(t, c, nil))
	other := opened(t, c, &etcdlock.Options{Namespace: "ns/"}).(driver.Inspector)
	held, waits := mutex("ns/a"), mutex("ns/a")
	token := hold(t, s, held).Fence
	queue(t, s, waits)
	for id, token := range map[string]uint64{waits.ID: token + driver.Stride, held.ID: token} {
		if err := other.Break(t.Context(), "a", driver.PublicID(id), token, false); err != nil {
			t.Fatal(err)
		}
		if r, err := s.Renew(t.Context()); err != nil || !slices.Contains(r.Lost, driver.Loss{ID: id, Err: driver.ErrBroken}) {
			t.Errorf("renew: %+v, %v, want %s lost", r, err, id)
		}
	}
	for _, c := range []driver.Claim{held, waits} {
		if _, err := s.Acquire(t.Context(), c); !errors.Is(err, driver.ErrBroken) {
			t.Errorf("asked again, a claim that was broken is answered %v", err)
		}
	}
}

// A store that gives longer leases than it is asked for is named, once: a lock outlives its process
// for that long.
func TestLongerLeases(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t, "--election-timeout=2000")
	said := make(chan string, 10)
	d := opened(t, client(t, server.Addr()), &etcdlock.Options{Logger: slog.New(slog.NewTextHandler(lines(said), nil))})
	for range 2 {
		s := sessionOf(t, d, 2*time.Second)
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	select {
	case text := <-said:
		if !strings.Contains(text, "gives longer leases") || !strings.Contains(text, "given=3s") {
			t.Errorf("said %s", text)
		}
	case <-time.After(30 * time.Second):
		t.Error("said nothing of the longer leases")
	}
	select {
	case text := <-said:
		t.Errorf("said again: %s", text)
	default:
	}
}

// lines passes on what is written to it.
type lines chan<- string

func (l lines) Write(b []byte) (int, error) { l <- string(b); return len(b), nil }
