package main

import (
	"context"
	"errors"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// redsyncs is redsync with its default options: 8 s of expiry, and up to 32
// tries with 50 to 250 ms between them, begun anew when they are used up.
type redsyncs struct {
	clients []*redis.Client // of each master
	rs      *redsync.Redsync
	options []redsync.Option
}

func openRedsync(_ context.Context, p place) (locker, error) {
	r := &redsyncs{}
	var pools []redsyncredis.Pool
	for _, addr := range p.Redis {
		client := redis.NewClient(&redis.Options{Addr: addr})
		r.clients = append(r.clients, client)
		pools = append(pools, goredis.NewPool(client))
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
	for _, c := range r.clients {
		err = errors.Join(err, c.Close())
	}
	return err
}
