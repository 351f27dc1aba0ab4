package redislock

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/opening"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/internal/sessions"
	"github.com/interlock-go/interlock/redisconn"
)

var errClosed = fmt.Errorf("redislock: %w: the driver is closed", driver.ErrNotSent)

// Driver is a Redis as a store of locks. It is safe for concurrent use.
type Driver struct {
	conn    redisconn.Conn
	owned   bool // the connection was opened for this driver
	run     redisconn.Runner
	options Options
	server  redisstore.Server
	cluster bool
	lifeMS  string // how long a counter outlives its last visitor; "0": for ever

	ctx      context.Context //nolint:containedctx // of what goes on in the background; ends with Close
	cancel   context.CancelFunc
	batch    batcher
	crowd    redisstore.Crowd
	audience redisstore.Audience[*session] // of claims that may wait
	holding  *redisstore.Holding

	sessions sessions.Set[*session]
	mu       sync.Mutex
	ears     map[string]*ear   // by master
	channels map[string]string // of the ears to come
	ghosts   []ghost
}

// New makes a driver over a client that the program has; see [redisconn.Rueidis] and package redisconn/goredis. It looks
// at the server's configuration and logs what a lock could lose by it; with Options.Strict that is an error. While no server can be reached it
// asks again, until ctx ends, or for 15 s where that has no deadline.
func New(ctx context.Context, conn redisconn.Conn, o *Options) (*Driver, error) {
	return opening.Wait(ctx, func(ctx context.Context) (*Driver, error) { return newDriver(ctx, conn, o) })
}

// newDriver is New by one try.
func newDriver(ctx context.Context, conn redisconn.Conn, o *Options) (*Driver, error) {
	options := o.withDefaults()
	if options.KeepCounters > 0 && options.KeepCounters < leastKept {
		return nil, fmt.Errorf("redislock: KeepCounters of %v: want %v or more, or less than 0 for ever: %w", options.KeepCounters, leastKept, driver.ErrRefused)
	}
	d := &Driver{
		conn: conn, run: redisconn.Runner{Conn: conn, Functions: options.Functions}, options: options,
		ears: map[string]*ear{}, channels: map[string]string{},
		lifeMS: strconv.FormatInt(max(options.KeepCounters, 0).Milliseconds(), 10),
	}
	d.batch.d = d
	var err error
	if d.server, err = redisstore.Inspect(ctx, conn, "tokens go on growing", needed(options)); err == nil {
		err = d.server.Judge(options.Strict, options.Logger)
	}
	if err != nil {
		return nil, fmt.Errorf("redislock: %w", err)
	}
	d.cluster = conn.Node("x") != ""
	d.holding = redisstore.NewHolding(d.listenForHolders)
	d.ctx, d.cancel = context.WithCancel(context.Background())
	if moves := conn.Moves(); moves != nil {
		go d.follow(moves)
	}
	return d, nil
}

// Traits implements driver.Driver.
func (d *Driver) Traits() driver.Traits {
	return driver.Traits{
		Ordered: true, Shared: true, Counted: true, Mixed: true, Events: driver.AllKinds, Expires: true,
		Fence: driver.Durable, MinTTL: minTTL, Grain: grain,
		Survives: driver.Survival{Process: true, Restart: d.server.AppendOnly, Machine: d.server.Syncs},
	}
}

const (
	minTTL = 50 * time.Millisecond
	grain  = 50 * time.Millisecond // of the head's look at a claim that has run out

	leastKept = time.Hour // of Options.KeepCounters
)

// Key implements driver.Keyer: the name itself.
func (d *Driver) Key(name string) string { return name }

// Open implements driver.Driver.
func (d *Driver) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	if spec.TTL < minTTL {
		return nil, fmt.Errorf("redislock: TTL %v: want %v or more: %w", spec.TTL, minTTL, driver.ErrRefused)
	}
	s := newSession(d, spec)
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := redisstore.Reach(ctx, d.conn); err != nil {
		return nil, fmt.Errorf("redislock: %w", err)
	}
	if !d.sessions.Add(s) {
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
	ears := d.ears
	d.ears = map[string]*ear{}
	d.mu.Unlock()
	d.holding.Stop()
	d.cancel() // unsubscribed last: a process that cannot be told is skipped in line
	for _, e := range ears {
		e.Close(ctx)
	}
	if d.owned {
		redisstore.Close(ctx, d.conn)
	}
	return err
}

// channelAt is the channel of this process at the master of a name.
func (d *Driver) channelAt(name string) string {
	node := d.conn.Node(name)
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.channel(node)
}
