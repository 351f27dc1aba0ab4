package etcdlock_test

import (
	"errors"
	"slices"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
)

// A store whose quota is used up says so; what is held there is renewed, released, handed over and
// broken.
func TestQuota(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t, "--quota-backend-bytes=200000")
	c := client(t, server.Addr())
	d := opened(t, c, nil)
	s := session(t, d)
	first, second, taken := mutex("held"), mutex("held"), mutex("taken")
	hold(t, s, first)
	queue(t, s, second)
	token := hold(t, s, taken).Fence
	for {
		if _, err := c.Put(t.Context(), "big", string(make([]byte, 50_000))); err != nil {
			break
		}
	}
	if _, err := s.Acquire(t.Context(), mutex("new")); !errors.Is(err, driver.ErrUnable) || !errors.Is(err, driver.ErrNotSent) {
		t.Errorf("a lock where there is no room: %v", err)
	}
	if r, err := s.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
		t.Errorf("renew: %+v, %v", r, err)
	}
	release(t, s, first)
	if g := await(t, s, second); g.Fence == 0 {
		t.Errorf("granted %+v", g)
	}
	release(t, s, second)
	id := driver.PublicID(taken.ID)
	if err := d.(driver.Inspector).Break(t.Context(), "taken", id, token, false); !errors.Is(err, driver.ErrUnable) {
		t.Errorf("a mark where there is no room: %v", err)
	}
	if err := d.(driver.Inspector).Break(t.Context(), "taken", id, token, true); err != nil {
		t.Errorf("break now: %v", err)
	}
	if r, err := s.Renew(t.Context()); err != nil || !slices.Equal(r.Lost, []driver.Loss{{ID: taken.ID, Err: driver.ErrGone}}) {
		t.Errorf("renew: %+v, %v, want %s lost", r, err, taken.ID)
	}
	r, err := c.Get(t.Context(), "big")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compact(t.Context(), r.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Defragment(t.Context(), server.Addr()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AlarmDisarm(t.Context(), &clientv3.AlarmMember{}); err != nil {
		t.Fatal(err)
	}
	hold(t, s, mutex("new"))
}
