package main

import (
	"context"
	"errors"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	redsyncrueidis "github.com/go-redsync/redsync/v4/redis/rueidis"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"
)

// redsyncs is redsync with its default options: 8 s of expiry, and up to 32
// tries with 50 to 250 ms between them, begun anew when they are used up.
type redsyncs struct {
	closes  []func() error // of each master's client
	rs      *redsync.Redsync
	options []redsync.Option
}

// openRedsync has it over go-redis, the client that its README begins with.
func openRedsync(_ context.Context, p place) (locker, error) {
	return redsyncOver(p, func(addr string) (redsyncredis.Pool, func() error, error) {
		client := redis.NewClient(&redis.Options{Addr: addr})
		return goredis.NewPool(client), client.Close, nil
	})
}

// openRedsyncRueidis has it over rueidis, by redsync's own adapter: requests
// of many goroutines share a connection and are sent together.
func openRedsyncRueidis(_ context.Context, p place) (locker, error) {
	return redsyncOver(p, func(addr string) (redsyncredis.Pool, func() error, error) {
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
		if err != nil {
			return nil, nil, err
		}
		end := func() error { client.Close(); return nil }
		return redsyncrueidis.NewPool(rueidiscompat.NewAdapter(client)), end, nil
	})
}

func redsyncOver(p place, dial func(addr string) (redsyncredis.Pool, func() error, error)) (locker, error) {
	r := &redsyncs{}
	var pools []redsyncredis.Pool
	for _, addr := range p.Redis {
		pool, end, err := dial(addr)
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		r.closes = append(r.closes, end)
		pools = append(pools, pool)
	}
	r.rs = redsync.New(pools...)
	if p.TTL > 0 {
		r.options = append(r.options, redsync.WithExpiry(p.TTL))
	}
	return r, nil
}

func (r *redsyncs) mutex(name string) mutex { return redsyncName{r, name} }

// redsyncName makes a new redsync.Mutex each time: one belongs to one
// goroutine.
type redsyncName struct {
	*redsyncs
	name string
}

func (r redsyncName) lock(ctx context.Context) (func() error, error) {
	m := r.rs.NewMutex(r.name, r.options...)
	for {
		err := m.LockContext(ctx)
		if err == nil {
			return func() error {
				_, err := m.UnlockContext(ctx)
				return err
			}, nil
		}
		if !redsyncTaken(err) {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// redsyncTaken reports whether others have the lock, or enough of its masters
// that nobody has it.
func redsyncTaken(err error) bool {
	var taken *redsync.ErrTaken
	var node *redsync.ErrNodeTaken
	return errors.As(err, &taken) || errors.As(err, &node) || errors.Is(err, redsync.ErrFailed)
}

func (r *redsyncs) close() error {
	var err error
	for _, end := range r.closes {
		err = errors.Join(err, end())
	}
	return err
}
