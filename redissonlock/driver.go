package redissonlock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/opening"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/internal/sessions"
	"github.com/interlock-go/interlock/redisconn"
)

var errClosed = fmt.Errorf("redissonlock: %w: the driver is closed", driver.ErrNotSent)

// Driver is a Redis as a store of locks in Redisson's layout. It is safe for concurrent use.
type Driver struct {
	conn    redisconn.Conn
	owned   bool // the connection was opened for this driver
	run     redisconn.Runner
	options Options
	server  redisstore.Server
	cluster bool
	sharded bool
	publish string // the command that tells those who wait
	client  string // what Redisson calls the id of a client, a UUID

	ctx     context.Context //nolint:containedctx // of what goes on in the background; ends with Close
	cancel  context.CancelFunc
	holding *redisstore.Holding

	sessions sessions.Set[*session]
	mu       sync.Mutex
	ears     map[string]*ear   // by master
	watches  map[string]*watch // by master
	rooms    map[place]*room
	sweeper  *time.Timer
	sweeping bool
}

// New makes a driver over a client that the program has; see [redisconn.Rueidis] and package redisconn/goredis. It looks
// at the server's configuration and logs what a lock could lose by it; with Options.Strict that is an error. While no server can be reached it
// asks again, until ctx ends, or for 15 s where that has no deadline.
func New(ctx context.Context, conn redisconn.Conn, o *Options) (*Driver, error) {
	return opening.Wait(ctx, func(ctx context.Context) (*Driver, error) { return newDriver(ctx, conn, o) })
}

// newDriver is New by one try.
func newDriver(ctx context.Context, conn redisconn.Conn, o *Options) (*Driver, error) {
	d := &Driver{
		conn: conn, run: redisconn.Runner{Conn: conn}, options: o.withDefaults(), client: newUUID(), publish: "PUBLISH",
		cluster: conn.Node("x") != "",
		ears:    map[string]*ear{}, watches: map[string]*watch{}, rooms: map[place]*room{},
	}
	var err error
	if d.server, err = redisstore.Inspect(ctx, conn, "tokens go back with it", commands); err == nil {
		err = d.server.Judge(d.options.Strict, d.options.Logger)
	}
	if err != nil {
		return nil, fmt.Errorf("redissonlock: %w", err)
	}
	d.sharded = d.options.Sharding == ShardingOn
	if d.options.Sharding == ShardingAuto && d.cluster {
		if d.sharded, err = sharded(ctx, conn); err != nil {
			return nil, fmt.Errorf("redissonlock: ask the masters for messages of a shard: %w", err)
		}
	}
	if d.sharded {
		d.publish = "SPUBLISH"
	}
	d.sweeper = time.AfterFunc(time.Hour, d.sweep)
	d.sweeper.Stop()
	d.holding = redisstore.NewHolding(d.watchHolders)
	d.ctx, d.cancel = context.WithCancel(context.Background())
	if moves := conn.Moves(); moves != nil {
		go d.follow(moves)
	}
	return d, nil
}

// newUUID returns a random UUID, version 4.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Traits implements driver.Driver.
func (d *Driver) Traits() driver.Traits {
	return driver.Traits{
		Shared: true, Events: driver.AllKinds, Expires: true, Fence: d.fence(), MinTTL: minTTL, Grain: grain,
		Survives: driver.Survival{Process: true, Restart: d.server.AppendOnly, Machine: d.server.Syncs},
	}
}

// fence says what the counters of tokens survive. Redisson counts from 1, so nothing repairs one that was lost.
func (d *Driver) fence() driver.Durability {
	if d.server.Syncs && !d.server.Forgets {
		return driver.Durable
	}
	return driver.UntilRestart
}

// sharded reports whether every master knows messages of a shard, which those from Redis 7 on do. One that gave no answer is taken to be
// like the others; where none did, they may be either.
func sharded(ctx context.Context, conn redisconn.Conn) (bool, error) {
	all, answered, silent := true, false, error(nil)
	err := conn.EachMaster(ctx, func(do redisconn.DoFunc) error {
		_, err := do(ctx, "PUBSUB", "SHARDNUMSUB")
		var answer *redisconn.Error
		switch {
		case redisconn.Is(err, "ERR"), redisconn.Is(err, "NOPERM"):
			all, err = false, nil
		case err != nil && !errors.As(err, &answer) && ctx.Err() == nil:
			silent = err
			return nil
		}
		answered = true
		return err
	})
	if err == nil && !answered {
		err = silent
	}
	return all, redisconn.Unchanged(err)
}

const (
	minTTL = 50 * time.Millisecond
	grain  = 50 * time.Millisecond // of the look at a hold that has run out
)

// Key implements driver.Keyer: the name itself.
func (d *Driver) Key(name string) string { return name }

// Open implements driver.Driver.
func (d *Driver) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	if spec.TTL < minTTL {
		return nil, fmt.Errorf("redissonlock: TTL %v: want %v or more: %w", spec.TTL, minTTL, driver.ErrRefused)
	}
	s := newSession(d, spec)
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := redisstore.Reach(ctx, d.conn); err != nil {
		return nil, fmt.Errorf("redissonlock: %w", err)
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
	ears, watches := d.ears, d.watches
	d.ears, d.watches = map[string]*ear{}, map[string]*watch{}
	d.sweeper.Stop()
	d.mu.Unlock()
	d.holding.Stop()
	d.cancel()
	for _, e := range ears {
		e.Close(ctx)
	}
	for _, w := range watches {
		w.Close(ctx)
	}
	if d.owned {
		redisstore.Close(ctx, d.conn)
	}
	return err
}
