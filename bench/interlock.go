package main

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	_ "github.com/interlock-go/interlock/filelock"  // file:
	_ "github.com/interlock-go/interlock/memlock"   // mem:
	_ "github.com/interlock-go/interlock/redislock" // redis:
)

// interlocked is Interlock with its default options; only the rows of leases
// and waiters set a TTL.
type interlocked struct {
	client *interlock.Client
	lock   func() []interlock.LockOption // of each mutex; nil = none
}

func openMemlock(ctx context.Context, p place) (locker, error) { return openMetered(ctx, "mem:", p) }

func openFilelock(ctx context.Context, p place) (locker, error) {
	return openMetered(ctx, "file:"+filepath.Join(p.Dir, "interlock"), p)
}

func openRedis(ctx context.Context, p place) (locker, error) {
	client, err := interlock.Open(ctx, p.redisURL(), &interlock.Options{TTL: p.TTL})
	return &interlocked{client: client}, err
}

func (p place) redisURL() string { return "redis://" + p.Redis[0] }

// strictly gives every goroutine's lock a note of its own. A claim is passed
// on within its process only to those with the same note, so each lease is
// one that the store has granted.
func strictly() func() []interlock.LockOption {
	var notes atomic.Int64
	return func() []interlock.LockOption {
		return []interlock.LockOption{interlock.Note(strconv.FormatInt(notes.Add(1), 10))}
	}
}

func openRedisStrict(ctx context.Context, p place) (locker, error) {
	client, err := interlock.Open(ctx, p.redisURL(), &interlock.Options{TTL: p.TTL})
	return &interlocked{client, strictly()}, err
}

// openRedisIsolated gives every lease a session and a claim of its own.
func openRedisIsolated(ctx context.Context, p place) (locker, error) {
	client, err := interlock.Open(ctx, p.redisURL(), &interlock.Options{TTL: p.TTL})
	return &interlocked{client, func() []interlock.LockOption {
		return []interlock.LockOption{interlock.Isolated()}
	}}, err
}

func openRedisMetered(ctx context.Context, p place) (locker, error) {
	return openMetered(ctx, p.redisURL(), p)
}

func (i *interlocked) mutex(name string) mutex {
	var o []interlock.LockOption
	if i.lock != nil {
		o = i.lock()
	}
	return interlockedMutex{i.client.Mutex(name, o...)}
}

type interlockedMutex struct{ *interlock.Mutex }

func (m interlockedMutex) lock(ctx context.Context) (func() error, error) {
	lease, err := m.Lock(ctx)
	if err != nil {
		return nil, err
	}
	return lease.Release, nil
}

func (i *interlocked) close() error { return i.client.Close() }

// meteredInterlock is Interlock over a store whose calls are counted.
type meteredInterlock struct {
	interlocked
	store *metered
}

func openMetered(ctx context.Context, url string, p place) (locker, error) {
	return openMeteredWith(ctx, url, &interlock.Options{TTL: p.TTL})
}

func openMeteredWith(ctx context.Context, url string, o *interlock.Options) (locker, error) {
	d, err := driver.OpenURL(ctx, url)
	if err != nil {
		return nil, err
	}
	m := &metered{Driver: d}
	client, err := interlock.New(m, o)
	if err != nil {
		return nil, errors.Join(err, d.Close(ctx))
	}
	return &meteredInterlock{interlocked{client: client}, m}, nil
}

func (i *meteredInterlock) calls() (operations, renewals int64) {
	return i.store.operations.Load(), i.store.renewals.Load()
}

func (i *meteredInterlock) close() error {
	return errors.Join(i.client.Close(), i.store.Driver.Close(context.Background()))
}
