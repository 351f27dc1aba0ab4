package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// Driver is an etcd as a store of locks. It is safe for concurrent use.
type Driver struct {
	client  *clientv3.Client
	owned   bool // it was made for this driver
	options Options

	ctx    context.Context //nolint:containedctx // of what goes on in the background; ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // what goes on in the background

	sessions sessions.Set[*session]

	mu     sync.Mutex
	views  map[string]*view // by name
	people map[clientv3.LeaseID]driver.Owner
}

// New makes a driver over a client that the program has. It looks whether the store answers. The client is the program's, whatever becomes of
// the driver; where it has no DialKeepAliveTime, a connection that has silently died is noticed late.
func New(ctx context.Context, client *clientv3.Client, o *Options) (*Driver, error) {
	d := &Driver{client: client, options: o.withDefaults(), views: map[string]*view{}, people: map[clientv3.LeaseID]driver.Owner{}}
	// A member that has lost its leader says so at once, instead of having the request wait for one.
	d.ctx, d.cancel = context.WithCancel(clientv3.WithRequireLeader(context.Background()))
	ctx, cancel := d.within(ctx, d.options.Timeout)
	defer cancel()
	// Without the client's own interface, which asks again and again and forgets why that failed.
	look := &etcdserverpb.RangeRequest{Key: []byte(d.options.Namespace + reserved), CountOnly: true}
	if _, err := etcdserverpb.NewKVClient(client.ActiveConnection()).Range(ctx, look); err != nil {
		d.cancel()
		if err = classify(err); !errors.Is(err, driver.ErrRefused) && !errors.Is(err, driver.ErrNotSent) {
			err = fmt.Errorf("%w: %w", driver.ErrNotSent, err) // it changes nothing
		}
		return nil, fmt.Errorf("etcdlock: %s: %w", strings.Join(client.Endpoints(), ","), err)
	}
	return d, nil
}

// within is a context for one request, which ends with ctx or when the time is over.
func (d *Driver) within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(clientv3.WithRequireLeader(ctx), timeout)
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
	minTTL = 2 * time.Second // of a lease, by etcd's usual election timeout; with a longer one it gives more
	grain  = time.Second     // of the store's looks at its leases, and of the revocation
)

// Key implements driver.Keyer.
func (d *Driver) Key(name string) string { return d.options.line(name) }

// Open implements driver.Driver: it is granted a lease and says under it who the session is.
func (d *Driver) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	if spec.ID == "" {
		return nil, fmt.Errorf("etcdlock: a session without an ID: want one as driver.NewID makes them: %w", driver.ErrRefused)
	}
	s := newSession(d, spec)
	if !d.sessions.Add(s) {
		return nil, errClosed
	}
	if err := s.open(ctx, spec); err != nil {
		d.sessions.Remove(s)
		return nil, fmt.Errorf("etcdlock: open a session: %w", err)
	}
	return s, nil
}

// Close implements driver.Driver.
func (d *Driver) Close(ctx context.Context) error {
	first, err := d.sessions.Close(ctx)
	if !first {
		return nil
	}
	d.cancel()
	over := make(chan struct{})
	go func() {
		defer close(over)
		d.wg.Wait()
		if d.owned {
			_ = d.client.Close()
		}
	}()
	select {
	case <-over:
	case <-ctx.Done():
	}
	return err
}

// owner returns who the session of a lease is, as far as that is known or can be read; a look at people's names fails nobody.
func (d *Driver) owner(ctx context.Context, lease clientv3.LeaseID) driver.Owner {
	d.mu.Lock()
	o, known := d.people[lease]
	d.mu.Unlock()
	if known {
		return o
	}
	ctx, cancel := d.within(ctx, d.options.Timeout)
	defer cancel()
	r, err := d.client.Get(ctx, d.options.session(lease))
	if err != nil {
		return o
	}
	for _, kv := range r.Kvs {
		var p person
		if ours, err := decode(kv.Value, &p); ours && err == nil {
			o = driver.DecodeOwner(p.Owner)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.people) > maxPeople {
		clear(d.people)
	}
	d.people[lease] = o
	return o
}

// maxPeople are kept.
const maxPeople = 1000
