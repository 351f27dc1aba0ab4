package etcdlock_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/etcdlock"
)

// patience is how long a test waits for what comes by itself.
const patience = 30 * time.Second

// opened makes a driver over a client.
func opened(t *testing.T, c *clientv3.Client, o *etcdlock.Options) driver.Driver {
	t.Helper()
	d, err := etcdlock.New(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = d.Close(ctx)
	})
	return d
}

// session opens one that lasts.
func session(t *testing.T, d driver.Driver) driver.Session {
	t.Helper()
	return sessionOf(t, d, time.Minute)
}

func sessionOf(t *testing.T, d driver.Driver, ttl time.Duration) driver.Session {
	t.Helper()
	s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: ttl, Owner: driver.Owner{Name: "test"}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mutex(name string) driver.Claim {
	return driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Queue: true}
}

func permit(name string) driver.Claim {
	return driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Permit, Weight: 1, Limit: 2, Queue: true}
}

// acquire takes c, or puts it in line.
func acquire(t *testing.T, s driver.Session, c driver.Claim) driver.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), c)
	if err != nil {
		t.Fatalf("acquire %q: %v", c.Name, err)
	}
	return g
}

func hold(t *testing.T, s driver.Session, c driver.Claim) driver.Grant {
	t.Helper()
	g := acquire(t, s, c)
	if !g.Held {
		t.Fatalf("%q is held by %+v", c.Name, g.Holder)
	}
	return g
}

func queue(t *testing.T, s driver.Session, c driver.Claim) {
	t.Helper()
	if g := acquire(t, s, c); g.Held {
		t.Fatalf("two hold %q", c.Name)
	}
}

func release(t *testing.T, s driver.Session, c driver.Claim) {
	t.Helper()
	if held, err := s.Release(t.Context(), c); err != nil || !held {
		t.Fatalf("release %q: held %v, %v", c.Name, held, err)
	}
}

// await waits until c holds.
func await(t *testing.T, s driver.Session, c driver.Claim) driver.Grant {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		g, err := s.Wait(ctx, c)
		if g.Held {
			return g
		}
		if ctx.Err() != nil || errors.Is(err, driver.ErrGone) || errors.Is(err, driver.ErrSessionLost) || errors.Is(err, driver.ErrBroken) {
			t.Fatalf("wait for %q: %v", c.Name, err)
		}
	}
}

// handOver has b wait behind a, and lets it in when something was done and both were renewed.
func handOver(t *testing.T, a, b driver.Session, do func()) {
	t.Helper()
	first, second := mutex("a"), mutex("a")
	hold(t, a, first)
	queue(t, b, second)
	told := begin(t, b, second)
	do()
	for _, s := range []driver.Session{a, b} {
		if r, err := s.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
			t.Fatalf("renew: %+v, %v", r, err)
		}
	}
	release(t, a, first)
	if g := <-told; !g.Held {
		await(t, b, second)
	}
	release(t, b, second)
}

// waiting begins a Wait, and returns when the view is there, so that nothing is left to ask.
func waiting(t *testing.T, w *way, s driver.Session, c driver.Claim) (told <-chan driver.Grant) {
	t.Helper()
	watches := w.count("/etcdserverpb.Watch/Watch")
	told = begin(t, s, c)
	eventually(t, "the line is read", func() bool {
		return w.count("/etcdserverpb.Watch/Watch") > watches && w.count("/etcdserverpb.KV/Range") > 0
	})
	return told
}

func begin(t *testing.T, s driver.Session, c driver.Claim) (told <-chan driver.Grant) {
	t.Helper()
	grants := make(chan driver.Grant, 1)
	go func() {
		g, _ := s.Wait(context.WithoutCancel(t.Context()), c)
		grants <- g
	}()
	return grants
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in %v: %s", patience, what)
		}
	}
}

// hex is a lease as it stands in keys.
func hex(lease clientv3.LeaseID) string { return strconv.FormatInt(int64(lease), 16) }

// keys are all keys of the store.
func keys(t *testing.T, c *clientv3.Client) (all []string) {
	t.Helper()
	r, err := c.Get(t.Context(), "", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range r.Kvs {
		all = append(all, string(kv.Key))
	}
	return all
}
