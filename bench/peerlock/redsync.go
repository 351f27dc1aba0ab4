package main

import (
	"context"
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// redsyncLock is redsync over one server, through go-redis.
type redsyncLock struct {
	rs   *redsync.Redsync
	name string
	ttl  time.Duration
	held *redsync.Mutex
}

func openRedsync(ctx context.Context, addr, name string, ttl time.Duration) (locker, error) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	if err := client.Ping(ctx).Err(); err != nil {
		return nil, err
	}
	return &redsyncLock{rs: redsync.New(goredis.NewPool(client)), name: name, ttl: ttl}, nil
}

func (l *redsyncLock) lock(ctx context.Context, wait time.Duration) (string, error) {
	m := l.rs.NewMutex(l.name, redsync.WithExpiry(l.ttl))
	err := poll(wait, func() (bool, error) {
		err := m.TryLockContext(ctx)
		if taken := new(redsync.ErrTaken); errors.As(err, &taken) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return "", err
	}
	l.held = m
	return l.name + "=" + m.Value(), nil
}

func (l *redsyncLock) unlock(ctx context.Context) error {
	if l.held == nil {
		return errNotHeld
	}
	_, err := l.held.UnlockContext(ctx)
	l.held = nil
	return err
}

func (l *redsyncLock) extend(ctx context.Context, ttl time.Duration) error {
	if l.held == nil {
		return errNotHeld
	}
	// A mutex has one expiry, so another one with the same value extends.
	m := l.rs.NewMutex(l.name, redsync.WithExpiry(ttl), redsync.WithValue(l.held.Value()))
	if _, err := m.ExtendContext(ctx); err != nil {
		return err
	}
	l.held = m
	return nil
}

func (l *redsyncLock) close(ctx context.Context) { _ = l.unlock(ctx) }
