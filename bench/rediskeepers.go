package main

import (
	"context"
	"errors"
)

// rawKeepers hold leases on Redis as most libraries do, and as cheaply as
// that goes: a goroutine, a timer and a context for each, and a script that
// compares and extends, all over one connection that merges what is sent at
// the same time.
type rawKeepers struct {
	keepers
	raw    *rawRedis
	extend script
}

const extendSource = `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("PEXPIRE", KEYS[1], ARGV[2]) end return 0`

func openRawKeepers(ctx context.Context, p place) (locker, error) {
	l, err := openRawRedis(ctx, p)
	if err != nil {
		return nil, err
	}
	k := &rawKeepers{keepers: keepers{period: renewalPeriod(p.TTL)}, raw: l.(*rawRedis)}
	k.extend, err = loadScript(ctx, k.raw.client, extendSource)
	return k, err
}

func (k *rawKeepers) mutex(name string) mutex { return rawKeeper{k, rawKey{k.raw, name}} }

type rawKeeper struct {
	*rawKeepers
	key rawKey
}

func (k rawKeeper) lock(ctx context.Context) (func() error, error) {
	value, err := k.key.take(ctx)
	if err != nil {
		return nil, err
	}
	k.taken.Add(1)
	held, cancel := context.WithCancel(ctx)
	go k.keep(held, cancel, func(ctx context.Context) error {
		c := k.raw.client
		n, err := c.Do(ctx, c.B().Evalsha().Sha1(k.extend.sha).Numkeys(1).Key(k.key.name).Arg(value, k.raw.ttl).Build()).AsInt64()
		if err == nil && n != 1 {
			err = errors.New("bench: lease lost")
		}
		return err
	})
	return func() error {
		cancel()
		return k.key.unlock(ctx, value)
	}, nil
}

func (k *rawKeepers) close() error { return k.raw.close() }

// redislockKeepers are what the users of redislock write around it.
type redislockKeepers struct {
	keepers
	locks *redislocks
}

func openRedislockKeepers(ctx context.Context, p place) (locker, error) {
	l, err := openRedislock(ctx, p)
	if err != nil {
		return nil, err
	}
	return &redislockKeepers{keepers{period: renewalPeriod(p.TTL)}, l.(*redislocks)}, nil
}

func (k *redislockKeepers) mutex(name string) mutex { return redislockKeeper{k, name} }

type redislockKeeper struct {
	*redislockKeepers
	name string
}

func (k redislockKeeper) lock(ctx context.Context) (func() error, error) {
	l, err := k.locks.locks.Obtain(ctx, k.name, k.locks.ttl, nil)
	if err != nil {
		return nil, err
	}
	k.taken.Add(1)
	held, cancel := context.WithCancel(ctx)
	go k.keep(held, cancel, func(ctx context.Context) error { return l.Refresh(ctx, k.locks.ttl, nil) })
	return func() error {
		cancel()
		return l.Release(ctx)
	}, nil
}

func (k *redislockKeepers) close() error { return k.locks.close() }
