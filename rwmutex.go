package interlock

import "context"

// RWMutex is a lock that many readers share or one writer has. Readers and writers come in order: a
// reader behind a waiting writer waits. Like a Mutex it is only a name with choices.
type RWMutex struct{ handle }

// RWMutex returns the read/write lock of this name; on a store without them Err says
// errors.ErrUnsupported.
func (c *Client) RWMutex(name string, o ...LockOption) *RWMutex {
	return &RWMutex{c.handle(name, o, Shared)}
}

// Err returns why this lock cannot be had, or nil.
func (m *RWMutex) Err() error { return m.why() }

// Lock waits until the lock is held for writing. See [Mutex.Lock].
func (m *RWMutex) Lock(ctx context.Context) (*Lease, error) {
	return lock(ctx, "lock", writeMode, false, &m.handle)
}

// TryLock is Lock without waiting. See [Mutex.TryLock].
func (m *RWMutex) TryLock(ctx context.Context) (*Lease, error) {
	return lock(ctx, "try", writeMode, true, &m.handle)
}

// Do waits for the lock for writing and runs fn with it. See [Mutex.Do].
func (m *RWMutex) Do(ctx context.Context, fn func(context.Context) error) error {
	return do(ctx, fn, m.Lock)
}

// RLock waits until the lock is held for reading. The readers of one client share a claim at the
// store, for as long as a waiting writer allows. A reader's lease has no token. Errors are those of
// [Mutex.Lock].
func (m *RWMutex) RLock(ctx context.Context) (*Lease, error) {
	return lock(ctx, "read lock", readMode, false, &m.handle)
}

// TryRLock is RLock without waiting. See [Mutex.TryLock].
func (m *RWMutex) TryRLock(ctx context.Context) (*Lease, error) {
	return lock(ctx, "read try", readMode, true, &m.handle)
}

// RDo waits for the lock for reading and runs fn with it. See [Mutex.Do].
func (m *RWMutex) RDo(ctx context.Context, fn func(context.Context) error) error {
	return do(ctx, fn, m.RLock)
}
