package interlock_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/memlock"
)

// blockedLog is a log whose reader has gone. early reports whether it is written too early, and
// fails the test then.
type blockedLog struct {
	slog.Handler
	early func() bool
	open  chan struct{}
}

func (b blockedLog) Enabled(context.Context, slog.Level) bool { return true }

func (b blockedLog) Handle(context.Context, slog.Record) error {
	if !b.early() { // who writes it early may hold a mutex: then to block would let nobody say so
		<-b.open
	}
	return nil
}

func TestL12_TrustEndsThoughTheLogBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		var held atomic.Pointer[interlock.Lease]
		log := blockedLog{slog.DiscardHandler, func() bool {
			early := held.Load().Context().Err() == nil
			if early {
				t.Error("the log is written before the lease's context has ended")
			}
			return early
		}, make(chan struct{})}
		c := newClient(t, store, &interlock.Options{Logger: slog.New(log)})
		l, start := hold(t, c, "m"), time.Now()
		held.Store(l)
		resume := store.Stall()
		if d := told(t, l).Sub(start); d != 13500*time.Millisecond {
			t.Errorf("told after %v though the log blocks, want 13.5s", d)
		}
		resume()
		time.Sleep(time.Minute) // the store answers again, which is logged, too
		again := make(chan error, 1)
		go func() {
			l, err := c.Mutex("other").Lock(t.Context())
			if err == nil {
				err = l.Release()
			}
			again <- err
		}()
		synctest.Wait()
		select {
		case err := <-again:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("nobody gets a lock while the log blocks")
		}
		close(log.open)
		l.Release()
	})
}

// A log that blocks while it is told of one lease keeps no other one alive past its end, nor that
// one.
func TestL12_TrustEndsThoughTheLogOfADropBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		var held atomic.Pointer[interlock.Lease]
		log := blockedLog{slog.DiscardHandler, func() bool {
			locked := interlock.Locked(held.Load())
			if locked {
				t.Error("the log is told of a dropped lease under the mutex for which its end waits")
			}
			return locked
		}, make(chan struct{})}
		c := newClient(t, store, &interlock.Options{Logger: slog.New(log)})
		dropped, other := hold(t, c, "dropped"), hold(t, c, "other")
		held.Store(dropped)
		go interlock.Drop(dropped)
		synctest.Wait()
		resume := store.Stall()
		time.Sleep(13500 * time.Millisecond)
		synctest.Wait()
		for name, l := range map[string]*interlock.Lease{"dropped": dropped, "other": other} {
			if l.Context().Err() == nil {
				t.Errorf("%s: its context is alive 13.5s after the last renewal, because the log blocks", name)
			}
		}
		close(log.open)
		resume()
		for _, l := range []*interlock.Lease{dropped, other} {
			_ = l.Release()
		}
	})
}

// A log that blocks while it is told that the store answers again keeps no lease from being
// renewed.
func TestL12_RenewalsGoOnThoughTheLogBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		log := blockedLog{slog.DiscardHandler, func() bool { return false }, make(chan struct{})}
		c := newClient(t, store, &interlock.Options{Logger: slog.New(log)})
		l := hold(t, c, "m")
		store.Fail(errReset)
		time.Sleep(6 * time.Second)
		store.Fail(nil)
		time.Sleep(time.Minute)
		if err := l.Err(); err != nil {
			t.Errorf("lost, because the log blocks: %v", err)
		}
		close(log.open)
		_ = l.Release()
	})
}
