package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxKeepers is how many leases one process of keepers can hold.
const maxKeepers = 1 << 15

// keepers holds leases as most lock libraries do: a goroutine, a timer and a
// context for each. Renewing one is what the embedded store does to renew a
// whole session, a compare-and-swap of a word in a mapped file; so the
// difference that is measured is the machinery and not the store.
type keepers struct {
	words  []atomic.Int64
	used   atomic.Int64
	period time.Duration
	ttl    time.Duration
	done   atomic.Int64
}

func openKeepers(_ context.Context, p place) (locker, error) {
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
	return &keepers{
		words:  unsafe.Slice((*atomic.Int64)(unsafe.Pointer(&mem[0])), maxKeepers),
		period: renewalPeriod(p.TTL), ttl: p.TTL,
	}, nil
}

func (k *keepers) mutex(string) mutex { return k }

func (k *keepers) lock(ctx context.Context) (func() error, error) {
	i := k.used.Add(1) - 1
	if i >= maxKeepers {
		return nil, errors.New("bench: too many keepers")
	}
	word := &k.words[i]
	word.Store(now() + k.ttl.Nanoseconds())
	held, cancel := context.WithCancel(ctx)
	go k.keep(held, cancel, word)
	return func() error { cancel(); return nil }, nil
}

// keep renews one lease until it is over or lost.
func (k *keepers) keep(held context.Context, lost context.CancelFunc, word *atomic.Int64) {
	t := time.NewTimer(k.period)
	defer t.Stop()
	for {
		select {
		case <-held.Done():
			return
		case <-t.C:
		}
		until := word.Load()
		if at := now(); at > until || !word.CompareAndSwap(until, at+k.ttl.Nanoseconds()) {
			lost()
			return
		}
		k.done.Add(1)
		t.Reset(k.period)
	}
}

func (k *keepers) calls() (operations, renewals int64) { return k.used.Load(), k.done.Load() }

func (k *keepers) close() error { return nil }

// renewalPeriod is how often Interlock renews with default options: a third
// of what is left of the TTL after a grace of a tenth.
func renewalPeriod(ttl time.Duration) time.Duration { return (ttl - ttl/10) / 3 }
