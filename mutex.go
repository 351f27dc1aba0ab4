package interlock

import "context"

// Mutex is a lock that one holder has at a time, in the whole fleet. It is only a name with
// choices: making one sends nothing and never fails, and it may be used by many goroutines.
type Mutex struct{ handle }

// Mutex returns the mutex of this name. A name that cannot be, or a choice that the store cannot
// keep, shows in Err and in every call.
func (c *Client) Mutex(name string, o ...LockOption) *Mutex { return &Mutex{c.handle(name, o, 0)} }

// Err returns why this mutex cannot be locked, or nil. What a store gives beyond what it says of
// itself is known from the first lock on.
func (m *Mutex) Err() error { return m.why() }

// Lock waits until the mutex is held. ctx bounds the waiting only; what bounds the holding is the
// lease's own context.
//
// Errors match: the context's error, and with it ErrHeld if the mutex was held when the wait ended;
// ErrHeld after the option Wait; ErrUnavailable when the store has answered nothing for
// Options.Patience, or when ctx ended or the Wait was over before it did; ErrDeadlock,
// ErrTooManyWaiters, ErrClosed; driver.ErrName for a name that has another use, and
// driver.ErrBroken when an operator broke the wait.
func (m *Mutex) Lock(ctx context.Context) (*Lease, error) {
	return lock(ctx, "lock", mutexMode, false, &m.handle)
}

// TryLock is Lock without waiting: ErrHeld if somebody has the mutex or waits for it,
// ErrUnavailable at once if the store fails.
func (m *Mutex) TryLock(ctx context.Context) (*Lease, error) {
	return lock(ctx, "try", mutexMode, true, &m.handle)
}

// Do waits for the mutex and runs fn with it. The context of fn ends with the lease's and with ctx,
// and carries the token: see [Fence]. Do never returns before fn has, releases also when fn panics,
// and returns what fn returned; if the lease was lost before fn returned, the result also matches
// ErrLost, even when fn returned nil.
func (m *Mutex) Do(ctx context.Context, fn func(context.Context) error) error {
	return do(ctx, fn, m.Lock)
}
