package main

import (
	"context"
	"errors"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// redsyncs is redsync with its default options: 8 s of expiry, and up to 32
// tries with 50 to 250 ms between them, begun anew when they are used up.
type redsyncs struct {
	client  *redis.Client
	rs      *redsync.Redsync
	options []redsync.Option
}

func openRedsync(_ context.Context, p place) (locker, error) {
	client := redis.NewClient(&redis.Options{Addr: p.Redis})
	r := &redsyncs{client: client, rs: redsync.New(goredis.NewPool(client))}
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
		if taken := new(redsync.ErrTaken); !errors.As(err, &taken) && !errors.Is(err, redsync.ErrFailed) {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

func (r *redsyncs) close() error { return r.client.Close() }
