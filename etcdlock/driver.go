package etcdlock

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/opening"
	"github.com/interlock-go/interlock/internal/rowline"
	"github.com/interlock-go/interlock/internal/sessions"
)

// Driver is an etcd as a store of locks. It is safe for concurrent use.
type Driver struct {
	client   *clientv3.Client
	owned    bool // it was made for this driver
	options  Options
	sessions *rowline.Sessions

	ctx    context.Context //nolint:containedctx // of what goes on in the background; ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // what goes on in the background
	longer sync.Once      // says that leases are longer than they were asked for

	mu     sync.Mutex // guards what is below, and what that has
	leases map[string]*lease
	places map[string]*place // by the ID of the claim
	views  map[string]*view  // by name
	people map[clientv3.LeaseID]driver.Owner
}

// New makes a driver over a client that the program has. It looks whether the store answers, and while it cannot be reached asks again, until
// ctx ends, or for 15 s where that has no deadline. The client is the program's, whatever becomes of the driver; where it has no
// DialKeepAliveTime, a connection that has silently died is noticed late, and where its DialOptions have no grpc.WithConnectParams, a store
// that was away for long is found again up to two minutes after it is back.
func New(ctx context.Context, client *clientv3.Client, o *Options) (*Driver, error) {
	return opening.Wait(ctx, func(ctx context.Context) (*Driver, error) { return newDriver(ctx, client, o) })
}

// newDriver is New by one try.
func newDriver(ctx context.Context, client *clientv3.Client, o *Options) (*Driver, error) {
	d := &Driver{
		client: client, options: o.withDefaults(), leases: map[string]*lease{}, places: map[string]*place{}, views: map[string]*view{},
		people: map[clientv3.LeaseID]driver.Owner{},
	}
	d.sessions = rowline.New(rowline.Config{Store: store{d}, Ears: ears{d}, Package: "etcdlock", Timeout: d.options.Timeout, MinTTL: minTTL, MaxName: maxName})
	// A member that has lost its leader says so at once, instead of having the request wait for one.
	d.ctx, d.cancel = context.WithCancel(clientv3.WithRequireLeader(context.Background()))
	ctx, cancel := d.limit(ctx)
	defer cancel()
	// Without the client's own interface, which asks again and again and forgets why that failed.
	look := &etcdserverpb.RangeRequest{Key: []byte(d.options.Namespace + reserved + "/"), CountOnly: true}
	_, _, err := twice(ctx, client, func(ctx context.Context) (*etcdserverpb.RangeResponse, error) {
		return etcdserverpb.NewKVClient(client.ActiveConnection()).Range(ctx, look)
	})
	if err != nil {
		d.cancel()
		return nil, fmt.Errorf("etcdlock: %s: %w", strings.Join(client.Endpoints(), ","), unchanged(err))
	}
	return d, nil
}

// limit has a request end with ctx and when the store has taken too long, by a timer of its own: gRPC waits for the end of a context, whatever
// deadline that has.
func (d *Driver) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	end := time.Now().Add(d.options.Timeout)
	if at, ok := ctx.Deadline(); ok && at.Before(end) {
		end = at
	}
	return context.WithDeadline(metadata.AppendToOutgoingContext(ctx, rpctypes.MetadataRequireLeaderKey, rpctypes.MetadataHasLeader), end)
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

// session is one that is told of broken claims.
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
	l := d.lease(spec.ID)
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
func (d *Driver) owner(ctx context.Context, id clientv3.LeaseID) driver.Owner {
	d.mu.Lock()
	o, known := d.people[id]
	d.mu.Unlock()
	if known {
		return o
	}
	ctx, cancel := d.limit(ctx)
	defer cancel()
	r, err := d.get(ctx, d.options.session(id))
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
	if len(d.people) > 1000 {
		clear(d.people)
	}
	d.people[id] = o
	return o
}
