package main

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

// redislockLock is bsm/redislock.
type redislockLock struct {
	client *redislock.Client
	name   string
	ttl    time.Duration
	held   *redislock.Lock
}

func openRedislock(ctx context.Context, addr, name string, ttl time.Duration) (locker, error) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	if err := client.Ping(ctx).Err(); err != nil {
		return nil, err
	}
	return &redislockLock{client: redislock.New(client), name: name, ttl: ttl}, nil
}

func (l *redislockLock) lock(ctx context.Context, wait time.Duration) (string, error) {
	err := poll(wait, func() (bool, error) {
		held, err := l.client.Obtain(ctx, l.name, l.ttl, nil)
		if errors.Is(err, redislock.ErrNotObtained) {
			return false, nil
		}
		if err == nil {
			l.held = held
		}
		return err == nil, err
	})
	if err != nil {
		return "", err
	}
	return l.name + "=" + l.held.Token(), nil
}

func (l *redislockLock) unlock(ctx context.Context) error {
	if l.held == nil {
		return errNotHeld
	}
	err := l.held.Release(ctx)
	l.held = nil
	return err
}

func (l *redislockLock) extend(ctx context.Context, ttl time.Duration) error {
	if l.held == nil {
		return errNotHeld
	}
	return l.held.Refresh(ctx, ttl, nil)
}

func (l *redislockLock) close(ctx context.Context) { _ = l.unlock(ctx) }
