package redissonlock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/opening"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/internal/sessions"
	"github.com/interlock-go/interlock/redisconn"
)

// Driver is a Redis as a store of locks in Redisson's layout. It is safe for concurrent use.
type Driver struct {
	store   *redisstore.Store
	publish string // the command that wakes waiters
	client  string // what Redisson calls the id of a client, a UUID

	groups   *groups
	subs     *redisstore.Subscriptions // to breaks
	sessions sessions.Set[*session]
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
	store, err := redisstore.NewStore(ctx, conn, redisstore.Setup{
		Name: "redissonlock", Tokens: "tokens go back with it", Commands: commands,
		Strict: options.Strict, Timeout: options.Timeout, Logger: options.Logger,
	})
	if err != nil {
		return nil, err
	}
	shards := options.Sharding == ShardingOn
	if options.Sharding == ShardingAuto && store.Cluster {
		if shards, err = sharded(ctx, conn); err != nil {
			return nil, fmt.Errorf("redissonlock: ask the masters for messages of a shard: %w", err)
		}
	}
	d := &Driver{store: store, client: newUUID(), publish: "PUBLISH", groups: newGroups(store, shards)}
	if shards {
		d.publish = "SPUBLISH"
	}
	d.subs = redisstore.NewSubscriptions(store, redisstore.Events{
		Channel: func(string) string { return holders + d.client },
		Message: d.broken, Lost: d.unsubscribed, Sessions: redisstore.AllOf(&d.sessions),
	})
	store.OnMoves(d.groups.slotsMoved)
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
		Shared: true, Events: driver.AllKinds, Expires: true, Fence: d.fence(), MinTTL: redisstore.MinTTL, Grain: redisstore.Grain,
		Survives: driver.Survival{Process: true, Restart: d.store.Server.AppendOnly, Machine: d.store.Server.Syncs},
	}
}

// fence says what the counters of tokens survive. Redisson counts from 1, so nothing repairs one
// that was lost.
func (d *Driver) fence() driver.Durability {
	if d.store.Server.Syncs && !d.store.Server.Forgets {
		return driver.Durable
	}
	return driver.UntilRestart
}

// sharded reports whether every master knows messages of a shard, which those from Redis 7 on do.
// One that gave no answer is taken to be like the others; where none did, they may be either.
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

// Key implements driver.Keyer: the name itself.
func (d *Driver) Key(name string) string { return name }

// Close implements driver.Driver.
func (d *Driver) Close(ctx context.Context) error {
	first, err := d.sessions.Close(ctx)
	if first {
		d.store.Close(ctx, func() {
			d.groups.close(ctx)
			d.subs.Close(ctx)
		})
	}
	return err
}
