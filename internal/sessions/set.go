package sessions

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
)

// Set is the open sessions of a driver. The zero value is ready.
type Set[S interface {
	comparable
	Close(ctx context.Context) error
}] struct {
	mu      sync.Mutex
	all     map[S]struct{}
	closing bool
	closed  bool
}

// Add adds a session. It returns false if the driver is closed, or is being closed.
func (r *Set[S]) Add(s S) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return false
	}
	if r.all == nil {
		r.all = map[S]struct{}{}
	}
	r.all[s] = struct{}{}
	return true
}

// Remove forgets a session that is closed.
func (r *Set[S]) Remove(s S) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, s)
}

// All returns the sessions.
func (r *Set[S]) All() []S {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.all))
}

// Closed reports whether all sessions were closed with their driver.
func (r *Set[S]) Closed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// Close closes all sessions, side by side. It returns false, and does nothing, if it was called
// before.
func (r *Set[S]) Close(ctx context.Context) (first bool, err error) {
	r.mu.Lock()
	first, r.closing = !r.closing, true
	r.mu.Unlock()
	if !first {
		return false, nil
	}
	all := r.All()
	errs := make(chan error, len(all))
	for _, s := range all {
		go func() { errs <- s.Close(ctx) }()
	}
	for range all {
		err = errors.Join(err, <-errs)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return true, err
}
