package interlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
	"github.com/interlock-go/interlock/internal/lazyctx"
	"github.com/interlock-go/interlock/internal/report"
)

// Client takes locks in one store. It is safe for concurrent use, and one is enough for a process: its locks share
// sessions, and its goroutines share places in the store's lines.
type Client struct {
	driver     driver.Driver
	traits     driver.Traits
	opts       Options
	owner      driver.Owner
	clock      *clock.Clock
	ownsDriver bool
	anyTTL     bool     // Options.TTL is a default
	gave       sync.Map // by TTL: for how long the store keeps a session that is asked for with it
	cleaner    *cleaner
	logs       report.Queue // for Options.Logger
	traces     report.Queue // for Options.Tracer

	mu       sync.Mutex
	pools    map[time.Duration]*pool // by TTL
	isolated map[*pool]struct{}
	closed   bool
	usual    atomic.Pointer[pool] // that of Options.TTL, once there is one
	holds    atomic.Int64         // granted and not yet given back to the store
	left     atomic.Int64         // of instant: when the last of them left its line
	draining atomic.Bool          // nothing more can be granted
	empty    chan struct{}        // closed when draining and holds is 0
	finished chan struct{}        // closed when Shutdown has ended
}

// New returns a client of the store behind d. The driver stays open when the client is closed. A nil Options means the
// defaults. It fails when an option cannot be, or the store lacks what Options.Require asks for; nothing is sent yet.
func New(d driver.Driver, o *Options) (*Client, error) { return newClient(d, o, clock.Suspended) }

func newClient(d driver.Driver, o *Options, suspended func(time.Duration) time.Duration) (*Client, error) {
	traits := d.Traits()
	opts, err := o.withDefaults(traits)
	if err == nil && opts.FenceBase != 0 {
		if d, err = driver.WithFenceBase(d, opts.FenceBase); err != nil {
			err = fmt.Errorf("interlock: Options.FenceBase: %w", err)
		}
	}
	if err != nil {
		return nil, err
	}
	c := &Client{
		driver: d, traits: traits, opts: opts, anyTTL: o == nil || o.TTL == 0, owner: ownerNamed(opts.Owner), clock: clock.New(suspended),
		cleaner: newCleaner(), pools: map[time.Duration]*pool{}, isolated: map[*pool]struct{}{}, empty: make(chan struct{}),
	}
	c.logs.Omitted, c.traces.Omitted = c.logsOmitted, c.tracesOmitted
	return c, nil
}

// Key returns where the store keeps the lock of this name, for people who look there.
func (c *Client) Key(name string) string {
	if k, ok := c.driver.(driver.Keyer); ok {
		return k.Key(name)
	}
	return name
}

// Health asks the store for a renewal of this client's session and returns ErrUnavailable, with the reason, if that
// fails or is not answered for Options.Patience.
func (c *Client) Health(ctx context.Context) error {
	bounded := lazyctx.Within(ctx, c.opts.Patience)
	defer bounded.Finish()
	p, err := c.pool(c.opts.TTL, false)
	for again := true; err == nil; again = false {
		var s *session
		if s, err = p.open(bounded); err != nil {
			break
		}
		if err = s.renew(bounded); err == nil || !again || !errors.Is(err, driver.ErrSessionLost) {
			break
		}
		err = nil // the session was over, which says nothing about the store: look with a new one
	}
	if err != nil && !errors.Is(err, ErrClosed) {
		err = unavailable(err)
	}
	if err != nil {
		return fmt.Errorf("interlock: health: %w", err)
	}
	return nil
}

// pool returns the pool for a TTL, or a new one for an isolated lease.
func (c *Client) pool(ttl time.Duration, isolated bool) (*pool, error) {
	if p := c.usual.Load(); p != nil && ttl == c.opts.TTL && !isolated {
		return p, nil // which knows whether the client is closed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	if isolated {
		p := newPool(c, ttl, true)
		c.isolated[p] = struct{}{}
		return p, nil
	}
	p := c.pools[ttl]
	if p == nil {
		p = newPool(c, ttl, false)
		c.pools[ttl] = p
		if ttl == c.opts.TTL {
			c.usual.Store(p)
		}
	}
	return p, nil
}

// everyPool returns all pools of the client.
func (c *Client) everyPool() []*pool {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*pool
	for _, p := range c.pools {
		all = append(all, p)
	}
	for p := range c.isolated {
		all = append(all, p)
	}
	return all
}

// held counts a grant, which Shutdown waits for.
func (c *Client) held() { c.holds.Add(1) }

// unheld counts its end.
func (c *Client) unheld() {
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

// lastWord bounds what Shutdown waits for after the last lease is gone, and one Release for an answer. That of a lease which was
// released just before counts: together they have no more.
const lastWord = 2 * time.Second

// lastMoment is what is left of it for the end of the sessions where a Release took the rest; and what a log and a tracer have at last,
// each, for what they were not told yet.
const lastMoment = 50 * time.Millisecond

// Shutdown ends the client in the manner of net/http: no new locks, waiters get ErrClosed, and holders run on until
// they release. When ctx ends before, their leases' contexts end with ErrLost wrapping ErrClosed and their claims are
// released a grace later, or when they release; Shutdown then returns ctx's error. A MinHold is kept in any case.
// After that the sessions are closed, and the store too if Open opened it; a store that does not answer delays that by
// 2 s at most, and what it has not confirmed is an error that matches ErrUncertain and names the locks: they are free when
// their time is over.
func (c *Client) Shutdown(ctx context.Context) error {
	return errors.Join(c.shutdown(ctx))
}

// shutdown returns whether it had to end leases, and how the store's own end went.
func (c *Client) shutdown(ctx context.Context) (held, closing error) {
	c.mu.Lock()
	first := !c.closed
	if first {
		c.closed, c.finished = true, make(chan struct{})
	}
	finished := c.finished
	c.mu.Unlock()
	began := c.clock.Now()
	if first {
		for _, p := range c.everyPool() {
			p.turnAway(ErrClosed)
		}
		c.draining.Store(true) // only now: until a pool turned everybody away it could grant once more
		c.checkEmpty()
	}
	select {
	case <-c.empty: // also when ctx has ended
	default:
		select {
		case <-c.empty:
		case <-ctx.Done():
			held = fmt.Errorf("interlock: shutdown: leases were held: %w", ctx.Err())
			for _, p := range c.everyPool() {
				p.loseAll(ErrClosed)
			}
			<-c.empty
		}
	}
	if !first {
		<-finished
		return held, nil
	}
	defer close(finished)
	word := max(lastWord-c.clock.Since(max(began, clock.Instant(c.left.Load()))), lastMoment)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), word)
	defer cancel()
	cleaning, stop := context.WithTimeout(bounded, word/2) // what is not given back by then goes with the sessions
	late, end := context.WithTimeout(bounded, word*3/4)    // the sessions get the rest
	c.cleaner.finish(cleaning, late)
	stop()
	end()
	closing = shut(bounded, c.everyPool())
	if c.ownsDriver {
		closing = errors.Join(closing, c.driver.Close(bounded))
	}
	c.traces.Finish(lastMoment) // which may say to the log what it was not told of
	c.logs.Finish(lastMoment)
	return held, closing
}

// Close is Shutdown with a context that has ended: leases end now and their claims a grace later. It returns nil
// unless the store has not confirmed that in time, or the store that Open opened cannot be closed.
func (c *Client) Close() error {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := c.shutdown(ended)
	return err
}
