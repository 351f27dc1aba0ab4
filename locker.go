package interlock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/interlock-go/interlock/internal/keepalive"
	"github.com/interlock-go/interlock/internal/local"
)

// Locker returns the mutex as a [sync.Locker], for code that takes one, as [sync.NewCond] does.
// Mutex and Lease return errors; a sync.Locker cannot, so it has a policy, which is called with
// them:
//
//   - in Lock, when the mutex could not be had: with an error as of [Mutex.Lock]. If the policy returns, Lock tries again a
//     second later; it never returns without the lock. What no time mends fails so each time: ask Err first.
//   - when the lease is lost between Lock and Unlock: with an error that matches ErrLost, once, in a goroutine of its own at
//     the moment at which the lease's context ends. A grace later others get in, and the holder does not know, if the policy
//     returns. Unlock waits until it has. Where Unlock is the first to hear of the loss, it calls the policy itself.
//
// [PanicOnLoss] is the policy for who must not go on. A policy must not call Lock or Unlock of its
// own Locker. It is not told of a release that was not confirmed (ErrUncertain): the lock is free
// when its time is over.
//
// A Locker may be used by many goroutines. They exclude each other even where a lease is lost: the
// next Lock returns after the Unlock of the one that lost. Each call of this method returns another
// Locker. A goroutine that locks what it holds already waits for ever, as with a sync.Mutex. Prefer
// Do and Lock wherever they fit: their holders have a context and a token.
func (m *Mutex) Locker(policy func(error)) sync.Locker {
	return newLocker(&m.handle, mutexMode, policy)
}

// Locker returns the lock for writing as a [sync.Locker]. See [Mutex.Locker].
func (m *RWMutex) Locker(policy func(error)) sync.Locker {
	return newLocker(&m.handle, writeMode, policy)
}

// PanicOnLoss is a policy of a Locker: it panics with err. At a loss that is in a goroutine where
// nobody recovers, so the process ends before anybody else gets in.
func PanicOnLoss(err error) { panic(err) }

// locker is a lock without leases and errors.
//
// Lock takes a lease first, and then the slot, which Unlock gives back. In this order the
// goroutines stand in the client's line, where a lease is passed on without asking the store. The
// slot is free then, unless the goroutine that has it lost its lease: the next one is granted by
// now, and must wait here, or Unlock of the first would release it.
type locker struct {
	*handle
	mode   local.Mode
	policy func(error)
	slot   chan struct{} // a mutex that a bubble of virtual time understands; it guards the rest
	lease  *Lease
	stop   func() bool   // no longer tells of the loss; false: it is being told
	told   chan struct{} // closed once it was
}

func newLocker(h *handle, s local.Mode, policy func(error)) sync.Locker {
	if policy == nil {
		panic("interlock: a Locker without a policy: choose PanicOnLoss, or what else is to be done with an error")
	}
	return &locker{handle: h, mode: s, policy: policy, slot: make(chan struct{}, 1)}
}

func (k *locker) Lock() {
	ctx := context.Background() // without an end, and of no holder
	for {
		lease, err := lock(ctx, "lock", k.mode, false, k.handle)
		if err != nil {
			k.policy(err)
			keepalive.Sleep(ctx, time.Second)
			continue
		}
		k.slot <- struct{}{}
		if lease.Err() == nil {
			k.lease = lease
			k.watch(lease.Context())
			return
		}
		<-k.slot            // it was lost behind a goroutine that had not unlocked,
		_ = lease.Release() // and nobody has worked under it
	}
}

// watch has the end of ctx told, which before Unlock is the loss of the lease. What waits for that
// must not refer to the Lease, which is watched for being dropped.
func (k *locker) watch(ctx context.Context) {
	name, policy, told := k.name, k.policy, make(chan struct{})
	k.told = told
	k.stop = context.AfterFunc(ctx, func() {
		defer close(told)
		policy(&Error{Op: "lock", Name: name, Err: context.Cause(ctx)})
	})
}

func (k *locker) Unlock() {
	if len(k.slot) == 0 || k.lease == nil {
		panic("interlock: Unlock of a Locker that is not locked")
	}
	lease, unknown := k.lease, k.stop()
	k.lease = nil
	defer func() { <-k.slot }() // also when the policy panics
	err := lease.Release()
	switch {
	case !unknown:
		<-k.told
	case errors.Is(err, ErrLost):
		k.policy(err)
	}
}
