package memcachedlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/memcache"
	"github.com/interlock-go/interlock/internal/opening"
	"github.com/interlock-go/interlock/internal/sessions"
)

// Driver keeps locks in memcached. It is safe for concurrent use.
type Driver struct {
	options  Options
	servers  []*memcache.Client // in the order of their addresses
	sessions sessions.Set[*session]
}

// New returns a driver over these servers, "host" or "host:port", of which at least one has to answer: until one does it asks again, but not
// after the end of ctx, or for longer than 15 s where that has no deadline. Everybody who is to have the same locks names the same servers.
func New(ctx context.Context, servers []string, o *Options) (*Driver, error) {
	return opening.Wait(ctx, func(ctx context.Context) (*Driver, error) { return newDriver(ctx, servers, o) })
}

// newDriver is New by one try.
func newDriver(ctx context.Context, servers []string, o *Options) (*Driver, error) {
	d := &Driver{}
	err := d.configure(servers, o)
	if err == nil {
		if err = d.reach(ctx); err != nil && !errors.Is(err, driver.ErrNotSent) {
			err = fmt.Errorf("%w: %w", driver.ErrNotSent, err) // to ask changes nothing
		}
	}
	if err != nil {
		d.disconnect()
		return nil, fmt.Errorf("memcachedlock: %w", err)
	}
	d.options.Logger.Warn("interlock: memcached is for efficiency only: it forgets locks when its memory is full and when it is restarted, and then two hold; what must not happen twice needs another store")
	return d, nil
}

// reach returns when a server has answered, or why none did.
func (d *Driver) reach(ctx context.Context) (err error) {
	answers := make(chan error, len(d.servers))
	for _, s := range d.servers {
		go func() {
			_, err := s.Do(ctx, memcache.Nothing())
			answers <- err
		}()
	}
	for range d.servers {
		why := <-answers
		if why == nil {
			return nil
		}
		err = errors.Join(err, why)
	}
	return err
}

// Traits implements driver.Driver.
func (d *Driver) Traits() driver.Traits {
	return driver.Traits{
		Expires: true, Fence: driver.UntilRestart, MinTTL: minTTL, MaxTTL: maxTTL, Grain: 2*time.Second + latest*6/5,
		Survives: driver.Survival{Process: true},
	}
}

// The server takes a time of more than 30 days for a date. Who waits looks again between soonest and latest.
const (
	minTTL          = 3 * time.Second
	maxTTL          = 29 * 24 * time.Hour
	soonest, latest = 10 * time.Millisecond, 250 * time.Millisecond
)

// Open implements driver.Driver. Nothing stands in a server for a session.
func (d *Driver) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	if spec.TTL < minTTL || spec.TTL > maxTTL {
		return nil, fmt.Errorf("memcachedlock: TTL %v: want %v to %v: %w", spec.TTL, minTTL, maxTTL, driver.ErrRefused)
	}
	s := &session{d: d, owner: spec.Owner.Encode(), seconds: int((spec.TTL + time.Second - 1) / time.Second), claims: sessions.Claims[*claim]{}}
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

func (d *Driver) disconnect() {
	for _, s := range d.servers {
		s.Close()
	}
}
