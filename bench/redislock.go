package main

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

// What redislock leaves to its users: it has no default for either.
const (
	redislockTTL  = 10 * time.Second
	redislockPoll = 20 * time.Millisecond
)

// redislocks is bsm/redislock, tried again every redislockPoll.
type redislocks struct {
	client *redis.Client
	locks  *redislock.Client
	ttl    time.Duration
}

func openRedislock(_ context.Context, p place) (locker, error) {
	client := redis.NewClient(&redis.Options{Addr: p.Redis[0]})
	r := &redislocks{client: client, locks: redislock.New(client), ttl: redislockTTL}
	if p.TTL > 0 {
		r.ttl = p.TTL
	}
	return r, nil
}

func (r *redislocks) mutex(name string) mutex {
	return redislockName{r, name, &redislock.Options{RetryStrategy: redislock.LinearBackoff(redislockPoll)}}
}

type redislockName struct {
	*redislocks
	name    string
	options *redislock.Options
}

func (r redislockName) lock(ctx context.Context) (func() error, error) {
	for {
		l, err := r.locks.Obtain(ctx, r.name, r.ttl, r.options)
		if err == nil {
			return func() error { return l.Release(ctx) }, nil
		}
		// It gives up after a TTL on its own.
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return nil, err
		}
	}
}

func (r *redislocks) close() error { return r.client.Close() }
