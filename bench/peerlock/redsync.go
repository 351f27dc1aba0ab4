package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// redsyncLock is redsync over one server or several, through go-redis.
type redsyncLock struct {
	rs   *redsync.Redsync
	name string
	ttl  time.Duration
	held *redsync.Mutex
}

func openRedsync(ctx context.Context, addrs, name string, ttl time.Duration) (locker, error) {
	var pools []redsyncredis.Pool
	for addr := range strings.SplitSeq(addrs, ",") {
		o := &redis.Options{Addr: addr}
		if addr != addrs { // a majority may be there without one that is gone
			o.MaxRetries, o.DialerRetries = -1, 1
		}
		client := redis.NewClient(o)
		if err := client.Ping(ctx).Err(); err != nil {
			return nil, err
		}
		pools = append(pools, goredis.NewPool(client))
	}
	return &redsyncLock{rs: redsync.New(pools...), name: name, ttl: ttl}, nil
}

func (l *redsyncLock) lock(ctx context.Context, wait time.Duration) (string, error) {
	m := l.rs.NewMutex(l.name, redsync.WithExpiry(l.ttl))
	err := poll(wait, func() (bool, error) {
		err := m.TryLockContext(ctx)
		return err == nil, notTaken(err)
	})
	if err != nil {
		return "", err
	}
	l.held = m
	return l.name + "=" + m.Value(), nil
}

// notTaken is err unless it says that somebody else has a server. Where a
// majority is taken redsync says so; where fewer are, and others do not
// answer, it says so of each.
func notTaken(err error) error {
	all, one := new(redsync.ErrTaken), new(redsync.ErrNodeTaken)
	if errors.As(err, &all) || errors.As(err, &one) {
		return nil
	}
	return err
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
