package interlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
)

// Fence returns the token that ctx carries for name: that of the innermost lease for writing, of this name, whose
// context ctx descends from. It is 0 for names that are not held, and every guard of package fence refuses 0.
func Fence(ctx context.Context, name string) uint64 {
	for l := leaseOf(ctx); l != nil; l = l.parent {
		if f := l.fenceOf(name); f != 0 {
			return f
		}
	}
	return 0
}

func leaseOf(ctx context.Context) *lease {
	l, _ := ctx.Value(leaseKey{}).(*lease)
	return l
}

// reenter decides what it means that ctx may hold name already: the owner of a lock is its context. It returns a turn on
// the hold that is there, no turn and no error when ctx holds nothing of this name, or ErrDeadlock.
func (c *Client) reenter(ctx context.Context, h *handle, s shape) (*turn, error) {
	taken := 0 // of a semaphore, by ctx
	for l := leaseOf(ctx); l != nil; l = l.parent {
		if l.client != c {
			continue
		}
		for _, t := range l.turns {
			if t.name != h.name {
				continue
			}
			t.pool.mu.Lock()
			live := t.hold.lost == nil && !t.hold.left && t.hold.sharers > 0
			if !live {
				t.pool.mu.Unlock()
				continue
			}
			kind := t.hold.claim.Kind
			switch {
			case s.kind == driver.Permit:
				// Permits of one context are several leases, which can wait for each other only if they do not fit
				// together.
				taken += t.hold.claim.Weight
				t.pool.mu.Unlock()
				if taken+s.weight > s.limit {
					return nil, fmt.Errorf("%w %d times, of %d", ErrDeadlock, taken, s.limit)
				}
				continue
			case kind == driver.Permit:
				t.pool.mu.Unlock() // a permit is no lock, and the store refuses one beside it
				continue
			case !h.settings.reentrant:
				t.pool.mu.Unlock()
				return nil, fmt.Errorf("%w; use Reentrant to allow it", ErrDeadlock)
			case kind == driver.Read && s.kind.Exclusive():
				t.pool.mu.Unlock()
				return nil, fmt.Errorf("%w for reading, which cannot become writing", ErrDeadlock)
			}
			if choice := h.settings.unkept(&t); choice != "" {
				t.pool.mu.Unlock()
				return nil, fmt.Errorf("a re-entry shares the hold that is there, so it has no %s of its own: want none, or the same: %w", choice, errors.ErrUnsupported)
			}
			t.hold.sharers++ // keeps the hold from leaving until the new lease is on it
			t.pool.mu.Unlock()
			return &turn{name: h.name, pool: t.pool, hold: t.hold, kind: s.kind}, nil
		}
	}
	return nil, nil
}

// unkept names a choice that a lease cannot have which shares the hold of t. The pool's mutex is held.
func (s *settings) unkept(t *turn) (choice string) {
	h := t.hold
	switch {
	case s.ownTTL && s.ttl != t.pool.ttl:
		return "TTL"
	case s.ownGrace && s.grace != h.grace:
		return "Grace"
	case s.minHold > 0 && s.minHold != h.minHold:
		return "MinHold"
	case s.maxHold > 0 && s.maxHold != h.maxHold:
		return "MaxHold"
	case s.note != "" && s.note != h.claim.Note:
		return "Note"
	case s.isolated && !t.pool.isolated:
		return "session (Isolated)"
	}
	return ""
}
