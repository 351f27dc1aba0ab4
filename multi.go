package interlock

import (
	"context"
	"errors"
	"slices"
)

// Multi is several mutexes that are held together or not at all.
//
// They are taken one after the other, in order of their names, which costs a request each: so two
// who want the same names cannot block each other, and of several who only try one gets all of
// them, where each would have some if all were asked for at once. What nobody waits behind goes
// together: the names are renewed by one request, as all locks of a client with one TTL are, and
// given back side by side, after a Release and after a Lock that failed.
type Multi struct {
	handles []*handle
	err     error
}

// Multi returns the mutexes of these names, each once, sorted by bytes. Names or choices that
// cannot be show in Err.
func (c *Client) Multi(names []string, o ...LockOption) *Multi {
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	m := &Multi{}
	for _, name := range slices.Compact(sorted) {
		h := c.handle(name, o, 0)
		if m.err == nil {
			m.err = h.err
		}
		m.handles = append(m.handles, &h)
	}
	if len(m.handles) == 0 {
		m.err = &Error{Op: "lock", Err: errors.New("no names: want at least one")}
	}
	return m
}

// Err returns why these names cannot be locked, or nil.
func (m *Multi) Err() error {
	err := m.err
	for _, h := range m.handles {
		if err == nil {
			err = h.why()
		}
	}
	return err
}

// Lock waits until all names are held. The lease ends when the first of them is lost; the others
// are kept until it is released. [Lease.FenceOf] has their tokens. Errors are those of
// [Mutex.Lock], with the name that could not be had.
func (m *Multi) Lock(ctx context.Context) (*Lease, error) { return m.lock(ctx, "lock", false) }

// TryLock is Lock without waiting.
func (m *Multi) TryLock(ctx context.Context) (*Lease, error) { return m.lock(ctx, "try", true) }

// Do waits for all names and runs fn with them. See [Mutex.Do].
func (m *Multi) Do(ctx context.Context, fn func(context.Context) error) error {
	return do(ctx, fn, m.Lock)
}

func (m *Multi) lock(ctx context.Context, op string, try bool) (*Lease, error) {
	if m.err != nil {
		return nil, m.err
	}
	return lock(ctx, op, mutexMode, try, m.handles...)
}
