package interlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
	"github.com/interlock-go/interlock/internal/fault"
	"github.com/interlock-go/interlock/internal/keepalive"
	"github.com/interlock-go/interlock/internal/lazyctx"
	"github.com/interlock-go/interlock/internal/local"
	"github.com/interlock-go/interlock/internal/report"
)

// Client takes locks in one store. It is safe for concurrent use, and one is enough for a process:
// its locks share sessions, and its goroutines share places in the store's lines.
type Client struct {
	driver     driver.Driver
	traits     driver.Traits
	opts       Options
	defaults   settings // of a lock without options
	owner      driver.Owner
	clock      *clock.Clock
	ownsDriver bool
	anyTTL     bool     // Options.TTL is a default
	gave       sync.Map // by TTL: for how long the store keeps a session that is asked for with it
	cleaner    *keepalive.Cleaner
	common     local.Config // of the pools
	logs       report.Queue // for Options.Logger
	traces     report.Queue // for Options.Tracer

	mu       sync.Mutex
	pools    map[time.Duration]*local.Pool // by TTL
	isolated map[*local.Pool]struct{}
	closed   bool
	usual    atomic.Pointer[local.Pool] // that of Options.TTL, once there is one
	holds    atomic.Int64               // granted and not yet given back to the store: Shutdown waits for them
	left     atomic.Int64               // of instant: when the last of them left its line
	draining atomic.Bool                // nothing more can be granted
	empty    chan struct{}              // closed when draining and holds is 0
	finished chan struct{}              // closed when Shutdown has ended
}

// New returns a client of the store behind d. The driver stays open when the client is closed. A
// nil Options means the defaults. It fails when an option cannot be, or the store lacks what
// Options.Require asks for; nothing is sent yet.
func New(d driver.Driver, o *Options) (*Client, error) { return newClient(d, o, clock.Suspended) }

func newClient(d driver.Driver, o *Options, suspended func(time.Duration) time.Duration) (*Client, error) {
	traits := d.Traits()
	opts, defaults, err := o.withDefaults(traits)
	if err == nil && opts.FenceBase != 0 {
		if d, err = driver.WithFenceBase(d, opts.FenceBase); err != nil {
			err = fmt.Errorf("interlock: Options.FenceBase: %w", err)
		}
	}
	if err != nil {
		return nil, err
	}
	c := &Client{
		driver: d, traits: traits, opts: opts, defaults: defaults, anyTTL: o == nil || o.TTL == 0, owner: ownerNamed(opts.Owner), clock: clock.New(suspended),
		cleaner: keepalive.NewCleaner(), pools: map[time.Duration]*local.Pool{}, isolated: map[*local.Pool]struct{}{}, empty: make(chan struct{}),
	}
	c.logs.Omitted, c.traces.Omitted = c.logsOmitted, c.tracesOmitted
	c.common = local.Config{
		Clock: c.clock, Owner: c.owner, Patience: opts.Patience, MaxWaiters: opts.MaxWaiters, NoPassing: traits.Single,
		Holds: &c.holds, Left: &c.left, Ended: c.ended, Log: c.log,
		Held: func(by *Holder) error { return &HeldError{Holder: by} },
	}
	return c, nil
}

// Key returns where the store keeps the lock of this name, for people who look there.
func (c *Client) Key(name string) string {
	if k, ok := c.driver.(driver.Keyer); ok {
		return k.Key(name)
	}
	return name
}

// Health asks the store for a renewal of this client's session and returns ErrUnavailable, with the
// reason, if that fails or is not answered for Options.Patience.
func (c *Client) Health(ctx context.Context) error {
	bounded := lazyctx.Within(ctx, c.opts.Patience)
	defer bounded.Finish()
	p, err := c.pool(c.opts.TTL, false)
	if err == nil {
		err = p.Health(bounded)
	}
	if err != nil && !errors.Is(err, ErrClosed) {
		err = fault.Unavailable(err)
	}
	if err != nil {
		return fmt.Errorf("interlock: health: %w", err)
	}
	return nil
}

// pool returns the pool for a TTL, or a new one for an isolated lease.
func (c *Client) pool(ttl time.Duration, isolated bool) (*local.Pool, error) {
	if p := c.usual.Load(); p != nil && ttl == c.opts.TTL && !isolated {
		return p, nil // which knows whether the client is closed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	if isolated {
		return c.isolatedPool(ttl), nil
	}
	p := c.pools[ttl]
	if p == nil {
		p = local.NewPool(&c.common, c.sessions(ttl), nil)
		c.pools[ttl] = p
		if ttl == c.opts.TTL {
			c.usual.Store(p)
		}
	}
	return p, nil
}

// isolatedPool returns a pool for one lease. The client's mutex is held.
func (c *Client) isolatedPool(ttl time.Duration) (p *local.Pool) {
	p = local.NewPool(&c.common, c.sessions(ttl), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.isolated, p)
	})
	c.isolated[p] = struct{}{}
	return p
}

// sessions says how the sessions of a TTL are kept alive.
func (c *Client) sessions(ttl time.Duration) keepalive.Config {
	return keepalive.Config{
		Driver: c.driver, Owner: c.owner, TTL: ttl, Idle: c.opts.Idle, Clock: c.clock, Cleaner: c.cleaner,
		Opened: func(valid time.Duration) { c.opened(ttl, valid) }, Renewed: c.renewed,
	}
}

// opened notes for how long the store keeps a session that was asked for with ttl: that may be
// beyond what its traits say, since a server has a limit of its own, or a greater least. It is
// shown from then on by Lease.Until, by Err where a grace was chosen that does not go with it, and
// once in the log where a TTL was chosen and comes out as less than half of it, or as more than
// twice.
func (c *Client) opened(ttl, valid time.Duration) {
	before, known := c.gave.Swap(ttl, valid)
	if known && before == valid || c.anyTTL && ttl == c.opts.TTL {
		return
	}
	if valid < ttl/2 || valid/2 > ttl {
		c.log(slog.LevelWarn, "interlock: the store keeps locks for another time than their TTL", "ttl", ttl, "kept", valid)
	}
}

// renewed tells the log and the tracer what came of a renewal.
func (c *Client) renewed(r keepalive.Renewal) {
	if r.Failures > 0 {
		c.log(slog.LevelInfo, "interlock: store answers again", "owner", c.opts.Owner, "failures", r.Failures)
	}
	c.trace(func(t Tracer) {
		t.Renewed(context.Background(), Renewed{Claims: r.Claims, Leases: r.Leases, Took: r.Took, Slack: r.Slack, Trust: r.Trust, Err: r.Err})
	})
}

// allPools returns all pools of the client.
func (c *Client) allPools() []*local.Pool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.AppendSeq(slices.Collect(maps.Values(c.pools)), maps.Keys(c.isolated))
}

// ended counts the end of a hold.
func (c *Client) ended() {
	if c.holds.Add(-1) == 0 && c.draining.Load() {
		c.checkEmpty()
	}
}

func (c *Client) checkEmpty() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds.Load() > 0 {
		return
	}
	select {
	case <-c.empty:
	default:
		close(c.empty)
	}
}
