package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// keepers hold leases as most lock libraries do: a goroutine, a timer and a
// context for each. What they do to renew one is what Interlock does in the
// same store to renew a whole session, so the difference that is measured is
// the machinery and not the store.
type keepers struct {
	period   time.Duration
	taken    atomic.Int64
	renewals atomic.Int64
}

// keep renews one lease until it is over or lost.
func (k *keepers) keep(held context.Context, lost context.CancelFunc, renew func(context.Context) error) {
	t := time.NewTimer(k.period)
	defer t.Stop()
	for {
		select {
		case <-held.Done():
			return
		case <-t.C:
		}
		if err := renew(held); err != nil {
			lost()
			return
		}
		k.renewals.Add(1)
		t.Reset(k.period)
	}
}

func (k *keepers) calls() (operations, renewals int64) { return k.taken.Load(), k.renewals.Load() }

func (k *keepers) close() error { return nil }

// maxKeepers is how many leases fileKeepers can hold.
const maxKeepers = 1 << 15

// fileKeepers renew by a compare-and-swap of a word in a mapped file, as the
// embedded store does.
type fileKeepers struct {
	keepers
	words []atomic.Int64
	ttl   time.Duration
}

func openFileKeepers(_ context.Context, p place) (locker, error) {
	f, err := os.Create(filepath.Join(p.Dir, "leases"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(maxKeepers * 8); err != nil {
		return nil, err
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, maxKeepers*8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &fileKeepers{
		keepers: keepers{period: renewalPeriod(p.TTL)}, ttl: p.TTL,
		words: unsafe.Slice((*atomic.Int64)(unsafe.Pointer(&mem[0])), maxKeepers),
	}, nil
}

func (k *fileKeepers) mutex(string) mutex { return k }

func (k *fileKeepers) lock(ctx context.Context) (func() error, error) {
	i := k.taken.Add(1) - 1
	if i >= maxKeepers {
		return nil, errors.New("bench: too many keepers")
	}
	word := &k.words[i]
	word.Store(now() + k.ttl.Nanoseconds())
	held, cancel := context.WithCancel(ctx)
	go k.keep(held, cancel, func(context.Context) error {
		until := word.Load()
		if at := now(); at > until || !word.CompareAndSwap(until, at+k.ttl.Nanoseconds()) {
			return errors.New("bench: lease lost")
		}
		return nil
	})
	return func() error { cancel(); return nil }, nil
}

// memKeepers renew a session of the store in memory for each lease.
type memKeepers struct {
	keepers
	store driver.Driver
	ttl   time.Duration
}

func openMemKeepers(_ context.Context, p place) (locker, error) {
	return &memKeepers{keepers: keepers{period: renewalPeriod(p.TTL)}, store: memlock.New(), ttl: p.TTL}, nil
}

func (k *memKeepers) mutex(name string) mutex { return memKeeper{k, name} }

type memKeeper struct {
	*memKeepers
	name string
}

func (k memKeeper) lock(ctx context.Context) (func() error, error) {
	s, err := k.store.Open(ctx, driver.Spec{ID: driver.NewID(), TTL: k.ttl})
	if err != nil {
		return nil, err
	}
	claim := driver.Claim{Name: k.name, ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All}
	if g, err := s.Acquire(ctx, claim); err != nil || !g.Held {
		return nil, fmt.Errorf("bench: the keeper of %s did not get it: %w", k.name, err)
	}
	k.taken.Add(1)
	held, cancel := context.WithCancel(ctx)
	go k.keep(held, cancel, func(ctx context.Context) error {
		_, err := s.Renew(ctx)
		return err
	})
	return func() error {
		cancel()
		return s.Close(context.WithoutCancel(ctx))
	}, nil
}

// renewalPeriod is how often Interlock renews with default options: a third
// of what is left of the TTL after a grace of a tenth.
func renewalPeriod(ttl time.Duration) time.Duration { return (ttl - ttl/10) / 3 }
