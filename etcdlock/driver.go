package etcdlock

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/opening"
	"github.com/interlock-go/interlock/internal/rowline"
	"github.com/interlock-go/interlock/internal/sessions"
)

// Driver is an etcd as a store of locks. It is safe for concurrent use.
type Driver struct {
	*server
	owned    bool // the client was made for this driver
	store    *store
	sessions *rowline.Sessions
}

// New makes a driver over a client that the program has. It looks whether the store answers, and
// while it cannot be reached asks again, until ctx ends, or for 15 s where that has no deadline.
// The client is the program's, whatever becomes of the driver; where it has no DialKeepAliveTime, a
// connection that has silently died is noticed late, and where its DialOptions have no
// grpc.WithConnectParams, a store that was away for long is found again up to two minutes after it
// is back.
func New(ctx context.Context, client *clientv3.Client, o *Options) (*Driver, error) {
	return opening.Wait(ctx, func(ctx context.Context) (*Driver, error) { return newDriver(ctx, client, o) })
}

// newDriver is New by one try.
func newDriver(ctx context.Context, client *clientv3.Client, o *Options) (*Driver, error) {
	s := newServer(client, o.withDefaults())
	if err := s.probe(ctx); err != nil {
		s.cancel()
		return nil, err
	}
	d := &Driver{server: s, store: newStore(s)}
	d.sessions = rowline.New(rowline.Config{
		Store: d.store, Notifier: &d.store.views, Package: "etcdlock", Timeout: s.options.Timeout, MinTTL: minTTL, MaxName: maxName,
	})
	return d, nil
}

// Traits implements driver.Driver.
func (d *Driver) Traits() driver.Traits {
	return driver.Traits{
		Ordered: true, Shared: true, Counted: true, Mixed: true, Events: driver.AllKinds, Expires: true,
		Fence: driver.Durable, MinTTL: minTTL, Grain: grain,
		Survives: driver.Survival{Process: true, Restart: true, Machine: true},
	}
}

const (
	minTTL = 2 * time.Second // of a lease, by etcd's usual election timeout; with a longer one leases are longer
	grain  = time.Second     // the store looks at its leases, and revokes them, so often
)

// Key implements driver.Keyer.
func (d *Driver) Key(name string) string { return d.options.prefix(name) }

// session is a session that tells of broken claims.
type session struct {
	*rowline.Session
	nudge sessions.Signal
}

// Nudge implements driver.Nudger.
func (s session) Nudge() <-chan struct{} { return s.nudge }

// Open implements driver.Driver. A lease has whole seconds.
func (d *Driver) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	spec.TTL = (max(spec.TTL, minTTL) + time.Second - 1).Truncate(time.Second)
	s, err := d.sessions.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	l := d.store.lease(spec.ID)
	if l == nil {
		return nil, errClosed
	}
	return session{s.(*rowline.Session), l.nudge}, nil
}

// Close implements driver.Driver.
func (d *Driver) Close(ctx context.Context) error {
	first, err := d.sessions.Close(ctx)
	if !first {
		return nil
	}
	d.cancel()
	_ = sessions.Aside(ctx, 0, func(context.Context) error {
		d.wg.Wait()
		if d.owned {
			_ = d.client.Close()
		}
		return nil
	})
	return err
}
