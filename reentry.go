package interlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/local"
)

// Fence returns the token that ctx carries for name: that of the innermost lease for writing, of
// this name, whose context ctx descends from. It is 0 for names that are not held, and every guard
// of package fence refuses 0.
func Fence(ctx context.Context, name string) uint64 {
	for l := leaseOf(ctx); l != nil; l = l.parent {
		if f := l.fenceOf(name); f != 0 {
			return f
		}
	}
	return 0
}

// reenter decides what it means that ctx may hold name already: the owner of a lock is its context.
// It returns the hold that is there, shared once more; none and no error when ctx holds nothing of
// this name; or ErrDeadlock.
func (h *handle) reenter(ctx context.Context, s local.Shape) (*held, error) {
	taken := 0 // of a semaphore, by ctx
	for l := leaseOf(ctx); l != nil; l = l.parent {
		if l.client != h.client {
			continue
		}
		for _, there := range l.holds {
			if there.name != h.name {
				continue
			}
			kind, weight, live := there.Live()
			switch {
			case !live:
				continue
			case s.Kind == driver.Permit:
				// Permits of one context are several leases, which can wait for each other only if
				// they do not fit together.
				if taken += weight; taken+s.Weight > s.Limit {
					return nil, fmt.Errorf("%w %d times, of %d", ErrDeadlock, taken, s.Limit)
				}
				continue
			case kind == driver.Permit:
				continue // a permit is no lock, and the store refuses one beside it
			case !h.settings.reentrant:
				return nil, fmt.Errorf("%w; use Reentrant to allow it", ErrDeadlock)
			case kind == driver.Read && s.Kind.Exclusive():
				return nil, fmt.Errorf("%w for reading, which cannot become writing", ErrDeadlock)
			}
			shared, err := h.share(there, s)
			if shared != nil || err != nil {
				return shared, err
			}
		}
	}
	return nil, nil
}

// share makes the hold that is there keep until one more lease is on it, or returns nil where it is
// no longer live.
func (h *handle) share(there held, s local.Shape) (*held, error) {
	ttl := time.Duration(0)
	if h.settings.ownTTL {
		ttl = h.settings.ttl
	}
	r := h.request(s)
	choice, live := there.Share(&r, ttl, h.settings.isolated, h.settings.ownGrace)
	switch {
	case !live:
		return nil, nil
	case choice != "":
		return nil, fmt.Errorf("a re-entry shares the hold that is there, so it has no %s of its own: want none, or the same: %w", choice, errors.ErrUnsupported)
	}
	return &held{Hold: there.Hold, pool: there.pool, name: h.name, kind: s.Kind}, nil
}
