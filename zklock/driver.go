package zklock

import (
	"cmp"
	"context"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/opening"
	"github.com/interlock-go/interlock/internal/sessions"
)

// Driver is an ensemble as a store of locks. It is safe for concurrent use.
type Driver struct {
	*ensemble
	many     int // names, from which on the doctor looks for those that are left over
	sessions sessions.Set[*session]
	reader   reader
}

// New makes a driver over the servers at addrs, each "host" or "host:port". It opens a session and
// ends it, to see that the path is there and how long a session may be. While no server can be
// reached it tries again, until ctx ends, or for 15 s where that has no deadline.
func New(ctx context.Context, addrs []string, o *Options) (driver.Driver, error) {
	return opening.Wait(ctx, func(ctx context.Context) (driver.Driver, error) { return newDriver(ctx, addrs, o) })
}

// newDriver is New by one try.
func newDriver(ctx context.Context, addrs []string, o *Options) (driver.Driver, error) {
	e, err := newEnsemble(addrs, o)
	if err != nil {
		return nil, err
	}
	if err := e.probe(ctx); err != nil {
		return nil, fmt.Errorf("zklock: %w", err)
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return &Driver{ensemble: e, many: manyNames, reader: reader{ensemble: e, opening: make(chan struct{}, 1)}}, nil
}

// manyNames is that number: each list of who holds reads all names. It is smaller in tests.
const manyNames = 10_000

// Key implements driver.Keyer.
func (d *Driver) Key(name string) string { return d.dir(name) }

// Traits implements driver.Driver. A session ends a tick or two after its timeout, and is trusted
// for two thirds of that.
func (d *Driver) Traits() driver.Traits {
	return driver.Traits{
		Ordered: true, Shared: true, Counted: d.options.Layout != Kazoo, Mixed: !d.options.SemaphoreMutex, Events: driver.AllKinds, Expires: true, Fence: driver.Durable,
		MinTTL: minTTL, MaxTTL: d.maxTTL(), Grain: d.longest / 2,
		Survives: driver.Survival{Process: true, Restart: true, Machine: true},
	}
}

// Open implements driver.Driver.
func (d *Driver) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	s := &session{
		ensemble: d.ensemble, all: &d.sessions, id: spec.ID, owner: spec.Owner.Encode(), claims: sessions.Claims[*claim]{},
		watches: watches{own: map[string]*claim{}, ahead: map[string][]*claim{}}, ended: make(chan struct{}), losses: make(chan driver.Loss, 64),
	}
	s.refresh = s.reread
	ctx, cancel := d.within(ctx)
	defer cancel()
	if err := s.open(ctx, d.timeout(spec.TTL)); err != nil {
		return nil, fmt.Errorf("zklock: open a session: %w", err)
	}
	if !d.sessions.Add(s) {
		_ = s.Close(ctx)
		return nil, errClosed
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
	return cmp.Or(err, d.reader.close(ctx))
}
