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
	"github.com/interlock-go/interlock/redislock/internal/batch"
)

// Driver is a Redis as a store of locks. It is safe for concurrent use.
type Driver struct {
	store   *redisstore.Store
	options Options
	lifeMS  string // how long a counter outlives the last claim of its name; "0": for ever

	batch     batch.Batcher[request]
	contended redisstore.Contention
	receivers redisstore.Receivers[*session] // of claims that may wait
	subs      *redisstore.Subscriptions
	orphans   *redisstore.Orphans
	sessions  sessions.Set[*session]
}

// New makes a driver over a client that the program has; see [redisconn.Rueidis] and package
// redisconn/goredis. It checks the server's configuration and logs what can lose locks;
// with Options.Strict that is an error. While no server can be reached it tries again, until ctx
// ends, or for 15 s where that has no deadline.
func New(ctx context.Context, conn redisconn.Conn, o *Options) (*Driver, error) {
	return opening.Wait(ctx, func(ctx context.Context) (*Driver, error) { return newDriver(ctx, conn, o) })
}

// newDriver is New by one try.
func newDriver(ctx context.Context, conn redisconn.Conn, o *Options) (*Driver, error) {
	options := o.withDefaults()
	if options.KeepCounters > 0 && options.KeepCounters < leastKept {
		return nil, fmt.Errorf("redislock: KeepCounters of %v: want %v or more, or less than 0 for ever: %w", options.KeepCounters, leastKept, driver.ErrRefused)
	}
	store, err := redisstore.NewStore(ctx, conn, redisstore.Setup{
		Name: "redislock", Tokens: "tokens go on growing", Commands: needed(options), Functions: options.Functions,
		Strict: options.Strict, Timeout: options.Timeout, Logger: options.Logger,
	})
	if err != nil {
		return nil, err
	}
	d := &Driver{store: store, options: options, lifeMS: strconv.FormatInt(max(options.KeepCounters, 0).Milliseconds(), 10)}
	d.batch.Alone, d.batch.Together, d.batch.Stop = d.alone, d.together, store.Ctx.Done()
	d.orphans = redisstore.NewOrphans(store)
	d.subs = redisstore.NewSubscriptions(store, redisstore.Events{
		Channel: channelAt, Message: d.onMessage, Lost: d.unsubscribed, Sessions: redisstore.AllOf(&d.sessions),
	})
	store.OnMoves(d.slotsMoved)
	return d, nil
}

const leastKept = time.Hour // of Options.KeepCounters

// Traits implements driver.Driver.
func (d *Driver) Traits() driver.Traits {
	return driver.Traits{
		Ordered: true, Shared: true, Counted: true, Mixed: true, Events: driver.AllKinds, Expires: true,
		Fence: driver.Durable, MinTTL: redisstore.MinTTL, Grain: redisstore.Grain,
		Survives: driver.Survival{Process: true, Restart: d.store.Server.AppendOnly, Machine: d.store.Server.Syncs},
	}
}

// Key implements driver.Keyer: the name itself.
func (d *Driver) Key(name string) string { return name }

// Open implements driver.Driver.
func (d *Driver) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	return redisstore.Open(ctx, d.store, &d.sessions, spec, func() *session {
		s := &session{d: d}
		s.Session = redisstore.NewSession(d.store, new(sync.Mutex), spec, redisstore.Layout[*claim]{
			Check: check, Claim: newClaim, Drop: func(c *claim) {
				if c.Queue {
					d.receivers.Remove(c.ID)
				}
			},
		})
		return s
	})
}

// Close implements driver.Driver.
func (d *Driver) Close(ctx context.Context) error {
	first, err := d.sessions.Close(ctx)
	if first {
		d.store.Close(ctx, func() { d.subs.Close(ctx) })
	}
	return err
}
