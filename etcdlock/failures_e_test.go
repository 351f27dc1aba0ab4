package etcdlock_test

import (
	"errors"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
)

// A claim whose key goes in the same step as the one before it is not let in.
func TestE01_ItsOwnKeyGoesWhileItWaits(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	c := client(t, server.Addr())
	w := newWay(t, server.Addr())
	a, b := session(t, opened(t, c, nil)), session(t, opened(t, w.client, nil))
	first, second := mutex("a"), mutex("a")
	hold(t, a, first)
	queue(t, b, second)
	told := waiting(t, w, b, second)
	if _, err := c.Delete(t.Context(), "a/", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	if g := <-told; g.Held {
		t.Errorf("a claim whose key is gone is held, with token %d", g.Fence)
	}
	if _, err := b.Acquire(t.Context(), second); !errors.Is(err, driver.ErrGone) {
		t.Errorf("asked again, it is answered %v, want that it is gone", err)
	}
}

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
