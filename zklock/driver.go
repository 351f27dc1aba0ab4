package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/opening"
	"github.com/interlock-go/interlock/internal/sessions"
	"github.com/interlock-go/interlock/internal/zk"
)

var errClosed = fmt.Errorf("zklock: %w: the driver is closed", driver.ErrNotSent)

// Driver is an ensemble as a store of locks. It is safe for concurrent use.
type Driver struct {
	addrs   []string
	options Options
	base    string        // the path of the locks, "" for the root
	longest time.Duration // of a session, as the servers say
	acl     zk.ACL        // of what is made
	parents zk.Mode       // of a lock's node
	many    int           // names, of which the doctor looks who stands in them

	ctx    context.Context //nolint:containedctx // of what goes on in the background; ends with Close
	cancel context.CancelFunc

	sessions sessions.Set[*session]
	opening  chan struct{} // has a value while the session for looks is being opened
	mu       sync.Mutex
	reader   *zk.Client // for people; nil until somebody looks
	closed   bool
}

// New makes a driver over the servers at addrs, each "host" or "host:port". It opens a session and ends it, to see that the path is there and how long
// a session may be. While no server can be reached it tries again, until ctx ends, or for 15 s where that has no deadline.
func New(ctx context.Context, addrs []string, o *Options) (driver.Driver, error) {
	return opening.Wait(ctx, func(ctx context.Context) (driver.Driver, error) { return newDriver(ctx, addrs, o) })
}

// newDriver is New by one try.
func newDriver(ctx context.Context, addrs []string, o *Options) (driver.Driver, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	d := &Driver{addrs: slices.Clone(addrs), options: options, base: options.Path, parents: zk.Container, many: manyNames, opening: make(chan struct{}, 1)}
	if options.ACL == CreatorsOnly || options.ACL == "" && options.User != "" {
		d.acl = zk.Creators
	}
	if options.Layout == Kazoo {
		d.parents = zk.Persistent // kazoo makes them once
	}
	for i, addr := range d.addrs {
		if addr == "" {
			return nil, fmt.Errorf("zklock: an address of a server is empty: want HOST or HOST:PORT: %w", driver.ErrRefused)
		}
		if _, _, err := net.SplitHostPort(addr); err != nil {
			d.addrs[i] = net.JoinHostPort(addr, "2181")
		}
	}
	ctx, cancel := d.within(ctx)
	defer cancel()
	probe, err := zk.Dial(ctx, d.connection(24*time.Hour))
	if err != nil {
		return nil, fmt.Errorf("zklock: %w", err)
	}
	d.longest = probe.Timeout()
	root := zk.Get(d.root(), false)
	err = probe.Do(ctx, root)
	if err == nil {
		if err = root.Err; root.Code == zk.NoNode {
			err = d.missing()
		} else if err != nil {
			err = fmt.Errorf("look at %s: %w", d.root(), err)
		}
	} else if ctx.Err() != nil {
		err = fmt.Errorf("%w: a server has opened a session, and answers nothing since: %w", driver.ErrNotSent, err)
	} else if errors.Is(err, zk.ErrUnanswered) || errors.Is(err, driver.ErrSessionLost) { // it was to be read alone
		err = fmt.Errorf("%w: a server has opened a session and ended it: %w", driver.ErrNotSent, err)
	}
	if err = cmp.Or(err, probe.Close(ctx)); err != nil {
		return nil, fmt.Errorf("zklock: %w", err)
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d, nil
}

// within bounds what is asked of the servers. That they are silent is not the end of the caller's own time, and does not match it.
func (d *Driver) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d.options.Timeout, fmt.Errorf("no answer for %v", d.options.Timeout))
}

// connection is what clients are made of.
func (d *Driver) connection(timeout time.Duration) zk.Options {
	o := d.options
	return zk.Options{
		Addrs: d.addrs, Timeout: timeout, Dial: o.Dial, TLS: o.TLS, Login: zk.Login{User: o.User, Password: o.Password, SASL: o.SASL},
	}
}

// root is a node that is there.
func (d *Driver) root() string { return cmp.Or(d.base, "/") }

func (d *Driver) missing() error {
	return fmt.Errorf("%w: the node %s does not exist: make it, as by zkCli.sh create %[2]s, or name another path", driver.ErrRefused, d.base)
}

// minTTL is the shortest time of a session. Servers mostly give more: two of their ticks.
const minTTL = time.Second

// maxTTL is two thirds of the longest session: see session.Valid.
func (d *Driver) maxTTL() time.Duration { return (d.longest * 2 / 3).Truncate(time.Millisecond) }

// Traits implements driver.Driver. A session ends a tick or two after its timeout, and is trusted for two thirds of that.
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
		d: d, id: spec.ID, owner: spec.Owner.Encode(), claims: sessions.Claims[*claim]{}, own: map[string]*claim{}, ahead: map[string][]*claim{},
		ended: make(chan struct{}), losses: make(chan driver.Loss, 64),
	}
	ctx, cancel := d.within(ctx)
	defer cancel()
	ttl := min(max(spec.TTL, minTTL), d.maxTTL())
	if err := s.open(ctx, ttl*3/2); err != nil {
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
	d.mu.Lock()
	reader := d.reader
	d.closed = true
	d.mu.Unlock()
	d.cancel()
	if reader != nil {
		err = cmp.Or(err, reader.Close(ctx))
	}
	return err
}
