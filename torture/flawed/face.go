package flawed

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/memcache"
)

// faceValue is the lock of a memcached, added where it is missing, and compared before it is
// renewed or deleted. An item for N seconds is trusted for so long, although the server counts by a
// clock that it sets once a second.
type faceValue struct{ *memcache.Client }

func openFace(ctx context.Context, addr string) (driver.Driver, error) {
	c := memcache.New(memcache.Server{Addr: addr, Timeout: 2 * time.Second})
	if _, err := c.Do(ctx, memcache.Nothing()); err != nil {
		c.Close()
		return nil, fmt.Errorf("flawed: %w", err)
	}
	return &store{lock: faceValue{c}, close: c.Close, traits: driver.Traits{Expires: true, MinTTL: time.Second, Grain: 2 * time.Second}}, nil
}

func (faceValue) value(g *grip) string { return g.id }

func (f faceValue) acquire(ctx context.Context, g *grip, ttl time.Duration) (bool, error) {
	r, err := f.Do(ctx, memcache.Add(g.key, []byte(g.value), int(ttl/time.Second)))
	return r.Status == memcache.Done, err
}

// change does something to the item, if it is still this claim's.
func (f faceValue) change(ctx context.Context, g *grip, do func(v memcache.Version) *memcache.Request) (bool, error) {
	r, err := f.Do(ctx, memcache.Get(g.key))
	if err != nil || string(r.Value) != g.value {
		return false, err
	}
	r, err = f.Do(ctx, do(r.Version))
	return r.Status == memcache.Done, err
}

func (f faceValue) renew(ctx context.Context, g *grip, ttl time.Duration) (bool, error) {
	return f.change(ctx, g, func(v memcache.Version) *memcache.Request {
		return memcache.Swap(g.key, []byte(g.value), int(ttl/time.Second), v)
	})
}

func (f faceValue) release(ctx context.Context, g *grip) (bool, error) {
	return f.change(ctx, g, func(v memcache.Version) *memcache.Request { return memcache.Delete(g.key, v) })
}

func (faceValue) valid(ttl, _ time.Duration) time.Duration { return ttl }
