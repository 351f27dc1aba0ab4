package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	_ "github.com/interlock-go/interlock/filelock" // file:
	_ "github.com/interlock-go/interlock/memlock"  // mem:
)

// interlocked is Interlock with its default options; only the rows of leases
// and waiters set a TTL.
type interlocked struct {
	client *interlock.Client
	store  *metered
}

func openMemlock(ctx context.Context, p place) (locker, error) { return openInterlock(ctx, "mem:", p) }

func openFilelock(ctx context.Context, p place) (locker, error) {
	return openInterlock(ctx, "file:"+filepath.Join(p.Dir, "interlock"), p)
}

func openInterlock(ctx context.Context, url string, p place) (locker, error) {
	d, err := driver.OpenURL(ctx, url)
	if err != nil {
		return nil, err
	}
	m := &metered{Driver: d}
	client, err := interlock.New(m, &interlock.Options{TTL: p.TTL})
	if err != nil {
		return nil, errors.Join(err, d.Close(ctx))
	}
	return &interlocked{client, m}, nil
}

func (i *interlocked) mutex(name string) mutex { return interlockedMutex{i.client.Mutex(name)} }

type interlockedMutex struct{ *interlock.Mutex }

func (m interlockedMutex) lock(ctx context.Context) (func() error, error) {
	lease, err := m.Lock(ctx)
	if err != nil {
		return nil, err
	}
	return lease.Release, nil
}

func (i *interlocked) calls() (operations, renewals int64) {
	return i.store.operations.Load(), i.store.renewals.Load()
}

func (i *interlocked) close() error {
	return errors.Join(i.client.Close(), i.store.Driver.Close(context.Background()))
}
