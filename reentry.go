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

// reenter decides what it means that the context of a Lock, which descends from that of the lease
// l, may hold the name already: the owner of a lock is its context. It returns the hold that is
// there, shared once more; none and no error when the context holds nothing of this name; or
// ErrDeadlock.
func (h *handle) reenter(l *lease, r *local.Request) (held, error) {
	taken := 0 // of a semaphore, by the context
	for ; l != nil; l = l.parent {
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
			case r.Kind == driver.Permit:
				// Permits of one context are several leases, which can wait for each other only if
				// they do not fit together.
				if taken += weight; taken+r.Weight > r.Limit {
					return held{}, fmt.Errorf("%w %d times, of %d", ErrDeadlock, taken, r.Limit)
				}
				continue
			case kind == driver.Permit:
				continue // a permit is no lock, and the store refuses one beside it
			case !h.settings.reentrant:
				return held{}, fmt.Errorf("%w; use Reentrant to allow it", ErrDeadlock)
			case kind == driver.Read && r.Kind.Exclusive():
				return held{}, fmt.Errorf("%w for reading, which cannot become writing", ErrDeadlock)
			}
			if live, err := h.share(there, r); live {
				return held{Hold: there.Hold, pool: there.pool, name: h.name, kind: r.Kind}, err
			}
		}
	}
	return held{}, nil
}

// share keeps the hold that is there until one more lease is on it. It reports false where the hold
// is no longer live.
func (h *handle) share(there held, r *local.Request) (live bool, _ error) {
	ttl := time.Duration(0)
	if h.settings.ownTTL {
		ttl = h.settings.ttl
	}
	choice, live := there.Share(r, ttl, h.settings.isolated, h.settings.ownGrace)
	if choice != "" {
		return live, fmt.Errorf("a re-entry shares the hold that is there, so it has no %s of its own: want none, or the same: %w", choice, errors.ErrUnsupported)
	}
	return live, nil
}
