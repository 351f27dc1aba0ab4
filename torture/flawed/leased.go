package flawed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/interlock-go/interlock/driver"
)

// leased is a lock in etcd: a key with the holder's name under a lease of its own. With the flaw
// the holder looks now and then whether there is a key, and goes by that: it knows of no end of its
// lease, and when that has run out it takes the key of the next holder for its own.
type leased struct {
	client *clientv3.Client
	exists bool // the flaw

	mu     sync.Mutex
	leases map[string]clientv3.LeaseID // of claims, by ID
}

// openLeased connects to the members of an etcd.
func openLeased(ctx context.Context, hosts string, exists bool) (driver.Driver, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: strings.Split(hosts, ","), Logger: zap.NewNop()})
	if err != nil {
		return nil, fmt.Errorf("flawed: %w", err)
	}
	if _, err := client.Get(ctx, "torture"); err != nil {
		_ = client.Close()
		return nil, fmt.Errorf("flawed: %w", err)
	}
	l := &leased{client: client, exists: exists, leases: map[string]clientv3.LeaseID{}}
	return &store{lock: l, close: func() { _ = client.Close() }, traits: driver.Traits{
		Expires: true, MinTTL: 2 * time.Second, Grain: time.Second,
	}}, nil
}

func (*leased) value(g *grip) string { return g.id }

// lease is that of a claim.
func (l *leased) lease(g *grip) clientv3.LeaseID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leases[g.id]
}

func (l *leased) acquire(ctx context.Context, g *grip, ttl time.Duration) (bool, error) {
	lease := l.lease(g)
	if lease == 0 {
		r, err := l.client.Grant(ctx, int64((ttl+time.Second-1)/time.Second))
		if err != nil {
			return false, err
		}
		lease = r.ID
		l.mu.Lock()
		l.leases[g.id] = lease
		l.mu.Unlock()
	}
	free := clientv3.Compare(clientv3.CreateRevision(g.key), "=", 0)
	r, err := l.client.Txn(ctx).If(free).Then(clientv3.OpPut(g.key, g.value, clientv3.WithLease(lease))).Else(clientv3.OpGet(g.key)).Commit()
	if err != nil {
		return false, l.forget(g, err)
	}
	if r.Succeeded { // under a lease that may be nearly over
		err := l.keep(ctx, lease)
		return err == nil, l.forget(g, err)
	}
	kvs := r.Responses[0].GetResponseRange().Kvs
	return len(kvs) > 0 && string(kvs[0].Value) == g.value, nil // an answer was lost
}

// keep renews a lease.
func (l *leased) keep(ctx context.Context, lease clientv3.LeaseID) error {
	_, err := l.client.KeepAliveOnce(ctx, lease)
	return err
}

// forget returns nil where an error says that the claim's lease is gone, and drops that, so that
// the next acquire begins with another one. It returns any other error as it is.
func (l *leased) forget(g *grip, err error) error {
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		l.mu.Lock()
		delete(l.leases, g.id)
		l.mu.Unlock()
		return nil
	}
	return err
}

func (l *leased) renew(ctx context.Context, g *grip, _ time.Duration) (bool, error) {
	err := l.keep(ctx, l.lease(g))
	if errors.Is(err, rpctypes.ErrLeaseNotFound) && !l.exists {
		return false, nil
	}
	if err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return false, err
	}
	r, err := l.client.Get(ctx, g.key)
	if err != nil {
		return false, err
	}
	return len(r.Kvs) > 0 && (l.exists || string(r.Kvs[0].Value) == g.value), nil
}

func (l *leased) release(ctx context.Context, g *grip) (bool, error) {
	own := clientv3.Compare(clientv3.Value(g.key), "=", g.value)
	r, err := l.client.Txn(ctx).If(own).Then(clientv3.OpDelete(g.key)).Commit()
	if err != nil {
		return false, err
	}
	_, err = l.client.Revoke(ctx, l.lease(g))
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		err = nil
	}
	return r.Succeeded, err
}

func (l *leased) valid(ttl, _ time.Duration) time.Duration {
	if l.exists {
		return 2 * ttl // when it looks again, at the latest
	}
	return ttl
}
