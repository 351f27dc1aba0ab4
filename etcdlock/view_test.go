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

// History that is compacted while a watch was down costs a look at the line.
func TestCompactionUnderAWait(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	c := client(t, server.Addr())
	w := newWay(t, server.Addr())
	a, b := session(t, opened(t, c, nil)), session(t, opened(t, w.client, nil))
	first, second := mutex("a"), mutex("a")
	hold(t, a, first)
	queue(t, b, second)
	w.forget()
	told := waiting(t, w, b, second)
	w.wire.Refuse()
	w.wire.Cut()
	release(t, a, first)
	r, err := c.Put(t.Context(), "other", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compact(t.Context(), r.Header.Revision); err != nil {
		t.Fatal(err)
	}
	if err := w.wire.Accept(); err != nil {
		t.Fatal(err)
	}
	if g := <-told; !g.Held {
		await(t, b, second)
	}
}
