package interlock

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/local"
)

// Semaphore is a number of permits, in the whole fleet, of which each holder takes some. It is
// first come first served: who wants few does not overtake who wants many. A permit comes back by
// itself when its holder dies. Like a Mutex a Semaphore is only a name with choices; its name is
// never that of a mutex.
type Semaphore struct {
	handle
	limit int
}

// Semaphore returns the semaphore of n permits of this name; on a store without them Err says
// errors.ErrUnsupported.
func (c *Client) Semaphore(name string, n int, o ...LockOption) *Semaphore {
	s := &Semaphore{c.handle(name, o, Counted), n}
	if s.err == nil && (n < 1 || n > driver.All) {
		s.err = &Error{Op: "acquire", Name: name, Err: fmt.Errorf("semaphore of %d permits: want 1 to %d", n, driver.All)}
	}
	return s
}

// Err returns why this semaphore cannot be acquired, or nil.
func (s *Semaphore) Err() error { return s.why() }

// Acquire waits for w permits at once. The lease has no token. Errors are those of [Mutex.Lock].
func (s *Semaphore) Acquire(ctx context.Context, w int) (*Lease, error) {
	return s.acquire(ctx, "acquire", w, false)
}

// TryAcquire is Acquire without waiting. See [Mutex.TryLock].
func (s *Semaphore) TryAcquire(ctx context.Context, w int) (*Lease, error) {
	return s.acquire(ctx, "try", w, true)
}

// Do waits for w permits and runs fn with them. See [Mutex.Do].
func (s *Semaphore) Do(ctx context.Context, w int, fn func(context.Context) error) error {
	return do(ctx, fn, func(ctx context.Context) (*Lease, error) { return s.Acquire(ctx, w) })
}

func (s *Semaphore) acquire(ctx context.Context, op string, w int, try bool) (*Lease, error) {
	if s.err == nil && (w < 1 || w > s.limit) {
		return nil, &Error{Op: op, Name: s.name, Err: fmt.Errorf("%d permits of %d: want 1 to %d", w, s.limit, s.limit)}
	}
	return lock(ctx, op, local.Mode{Kind: driver.Permit, Weight: w, Limit: s.limit}, try, &s.handle)
}
