package interlockcertmagic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/interlock-go/interlock"
)

// Storage keeps what the storage in it keeps, under locks of Interlock instead of that one's. It is safe for concurrent use.
type Storage struct {
	certmagic.Storage
	client  *interlock.Client
	options []interlock.LockOption

	mu    sync.Mutex
	holds map[string]*hold // by name: from Lock to Unlock
}

var (
	_ certmagic.Storage          = (*Storage)(nil)
	_ certmagic.TryLocker        = (*Storage)(nil)
	_ certmagic.LockLeaseRenewer = (*Storage)(nil)
)

// hold is a lease that a goroutine of this process works under, or believes so.
type hold struct {
	lease *interlock.Lease
	over  chan struct{} // closed by Unlock
}

// ErrNotLocked says that nobody in this process holds the name.
var ErrNotLocked = errors.New("not locked")

// New returns s with locks of the client, which have the names that CertMagic gives them, and the options. All machines that
// share s must lock in the same store, and by this package: the locks of s itself are not taken.
func New(s certmagic.Storage, client *interlock.Client, o ...interlock.LockOption) *Storage {
	return &Storage{Storage: s, client: client, options: slices.Clone(o), holds: make(map[string]*hold)}
}

// Lock implements certmagic.Locker: it waits until the name is held or ctx ends. Errors are those of interlock.Mutex.Lock.
// Goroutines of one process exclude each other, too: who holds a name and locks it once more waits for ever. That holds also
// where the lease is lost: the next of this process waits for the Unlock of the one that lost it.
func (s *Storage) Lock(ctx context.Context, name string) error {
	for {
		lease, err := s.client.Mutex(name, s.options...).Lock(ctx)
		if err != nil {
			return err
		}
		before := s.enter(name, lease)
		if before == nil {
			return nil
		}
		// A goroutine of this process has lost its lease and not unlocked. Its Unlock has nothing but the name, and would
		// release this lease.
		_ = lease.Release()
		select {
		case <-before.over:
		case <-ctx.Done():
			return fmt.Errorf("interlockcertmagic: %q is still at work in this process, though its lock was lost: %w", name, ctx.Err())
		}
	}
}

// TryLock implements certmagic.TryLocker: it reports false where another one holds the name or waits for it, and an error
// where the store does not answer.
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	lease, err := s.client.Mutex(name, s.options...).TryLock(ctx)
	switch {
	case errors.Is(err, interlock.ErrHeld):
		return false, nil
	case err != nil:
		return false, err
	}
	if s.enter(name, lease) != nil {
		_ = lease.Release()
		return false, nil
	}
	return true, nil
}

// enter notes that the name is held under lease, unless it is held already: then it returns by what.
func (s *Storage) enter(name string, lease *interlock.Lease) *hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.holds[name]; h != nil {
		return h
	}
	s.holds[name] = &hold{lease: lease, over: make(chan struct{})}
	return nil
}

// Unlock implements certmagic.Locker. The lock is released whatever becomes of ctx. The error matches interlock.ErrLost where
// the lock was lost before, interlock.ErrUncertain where the store has not confirmed the release, and ErrNotLocked.
func (s *Storage) Unlock(_ context.Context, name string) error {
	s.mu.Lock()
	h := s.holds[name]
	delete(s.holds, name)
	s.mu.Unlock()
	if h == nil {
		return notLocked(name)
	}
	defer close(h.over)
	return h.lease.Release()
}

// RenewLockLease implements certmagic.LockLeaseRenewer. Leases are renewed without it, for as long as they are held. It
// returns nil while the lock is guaranteed, and else what ended it.
func (s *Storage) RenewLockLease(_ context.Context, name string, _ time.Duration) error {
	s.mu.Lock()
	h := s.holds[name]
	s.mu.Unlock()
	if h == nil {
		return notLocked(name)
	}
	return h.lease.Err()
}

func notLocked(name string) error {
	return fmt.Errorf("interlockcertmagic: %q: %w in this process", name, ErrNotLocked)
}
