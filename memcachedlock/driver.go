package memcachedlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/opening"
	"github.com/interlock-go/interlock/internal/sessions"
)

// Driver keeps locks in memcached. It is safe for concurrent use.
type Driver struct {
	*cluster
	sessions sessions.Set[*session]
}

// New returns a driver over these servers, "host" or "host:port", of which at least one has to
// answer: until one does it asks again, but not after the end of ctx, or for longer than 15 s where
// that has no deadline. All programs that are to have the same locks name the same servers.
func New(ctx context.Context, servers []string, o *Options) (*Driver, error) {
	return opening.Wait(ctx, func(ctx context.Context) (*Driver, error) { return newDriver(ctx, servers, o) })
}

// newDriver is New by one try.
func newDriver(ctx context.Context, servers []string, o *Options) (*Driver, error) {
	c, err := newCluster(servers, o)
	if err != nil {
		return nil, fmt.Errorf("memcachedlock: %w", err)
	}
	if err := c.reach(ctx); err != nil {
		c.disconnect()
		if !errors.Is(err, driver.ErrNotSent) {
			err = fmt.Errorf("%w: %w", driver.ErrNotSent, err) // the request changes nothing
		}
		return nil, fmt.Errorf("memcachedlock: %w", err)
	}
	c.options.Logger.Warn("interlock: memcached is for efficiency only: it forgets locks when its memory is full and when it is restarted, and then two hold; what must not happen twice needs another store")
	return &Driver{cluster: c}, nil
}

// Key implements driver.Keyer.
func (d *Driver) Key(name string) string { return d.options.key(name) }

// Traits implements driver.Driver.
func (d *Driver) Traits() driver.Traits {
	return driver.Traits{
		Expires: true, Fence: driver.UntilRestart, MinTTL: minTTL, MaxTTL: maxTTL, Grain: 2*time.Second + latest*6/5,
		Survives: driver.Survival{Process: true},
	}
}

// Open implements driver.Driver. Servers keep nothing for a session.
func (d *Driver) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	if spec.TTL < minTTL || spec.TTL > maxTTL {
		return nil, fmt.Errorf("memcachedlock: TTL %v: want %v to %v: %w", spec.TTL, minTTL, maxTTL, driver.ErrRefused)
	}
	s := &session{
		cluster: d.cluster, all: &d.sessions, claims: sessions.Claims[*claim]{},
		common: common{owner: spec.Owner.Encode(), seconds: int((spec.TTL + time.Second - 1) / time.Second)},
	}
	if !d.sessions.Add(s) {
		return nil, fmt.Errorf("memcachedlock: %w: the driver is closed", driver.ErrNotSent)
	}
	if err := d.reach(ctx); err != nil {
		d.sessions.Remove(s)
		return nil, fmt.Errorf("memcachedlock: open a session: %w", err)
	}
	return s, nil
}

// Close implements driver.Driver.
func (d *Driver) Close(ctx context.Context) error {
	first, err := d.sessions.Close(ctx)
	if first {
		d.disconnect()
	}
	return err
}
