package flawed

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// session implements driver.Session.
type session struct {
	lock    lock
	ttl     time.Duration
	permits bool // there are not only mutexes

	mu      sync.Mutex
	claims  map[string]*claim
	renewed int // renewals begun
}

// claim is one that was sent, and not released.
type claim struct {
	turn chan struct{} // taken around its exchanges, so that they have an order
	grip grip
	held bool // as far as is known
	sent bool // the answer to an acquire is missing
}

// Valid implements driver.Session.
func (s *session) Valid() time.Duration { return s.lock.valid(s.ttl, 0) }

// take returns the session's claim, which it makes if there is none, when it is its turn.
func (s *session) take(ctx context.Context, c driver.Claim) (*claim, error) {
	s.mu.Lock()
	k := s.claims[c.ID]
	if k == nil {
		k = &claim{turn: make(chan struct{}, 1), grip: grip{key: c.Name, id: c.ID, limit: 1}}
		if c.Kind == driver.Permit {
			k.grip.limit = c.Limit
		}
		k.grip.value = s.lock.value(&k.grip)
		s.claims[c.ID] = k
	}
	s.mu.Unlock()
	select {
	case k.turn <- struct{}{}:
		return k, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("flawed: %w: %w", driver.ErrNotSent, ctx.Err())
	}
}

// Acquire implements driver.Session.
func (s *session) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if c.Kind != driver.Mutex && (c.Kind != driver.Permit || !s.permits || c.Weight != 1) {
		return driver.Grant{}, fmt.Errorf("flawed: a %v claim: %w", c.Kind, driver.ErrRefused)
	}
	k, err := s.take(ctx, c)
	if err != nil {
		return driver.Grant{}, err
	}
	defer func() { <-k.turn }()
	step := s.lock.acquire
	if k.held {
		step = s.lock.renew
	}
	for {
		before := s.renewals(0)
		k.sent = true
		held, err := step(ctx, &k.grip, s.ttl)
		if err != nil {
			return driver.Grant{}, fmt.Errorf("flawed: %w", err)
		}
		k.sent = false
		if k.held && !held {
			return driver.Grant{}, driver.ErrGone
		}
		k.held = held
		if !held || s.renewals(0) == before {
			return k.grant(), nil
		}
		// A renewal passed this claim by while it was under way, and is taken for its renewal, too.
		step = s.lock.renew
	}
}

// grant is the claim's state; its token is the lowest of those that it reserved.
func (k *claim) grant() driver.Grant {
	g := driver.Grant{Held: k.held}
	if k.held && k.grip.limit == 1 && k.grip.token > 0 {
		g.Fence = uint64(k.grip.token) - driver.Stride + 1 //nolint:gosec // a counter of ours
	}
	return g
}

// renewals counts renewals.
func (s *session) renewals(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewed += n
	return s.renewed
}

// Wait implements driver.Session.
func (s *session) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return driver.Poll(ctx, 2*time.Millisecond, 20*time.Millisecond, func(ctx context.Context) (driver.Grant, error) {
		return s.Acquire(ctx, c)
	})
}

// Release implements driver.Session. A claim that does not have the key, for certain, and stands in
// no line has nothing to give back.
func (s *session) Release(ctx context.Context, c driver.Claim) (bool, error) {
	k, err := s.take(ctx, c)
	if err != nil {
		return false, err
	}
	defer func() { <-k.turn }()
	held := false
	if k.held || k.sent || k.grip.at.client != nil {
		if held, err = s.lock.release(ctx, &k.grip); err != nil {
			return false, fmt.Errorf("flawed: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.claims, c.ID)
	return held && k.held, nil
}

// Renew implements driver.Session. A claim that is being acquired or released at the moment is left
// alone.
func (s *session) Renew(ctx context.Context) (driver.Renewal, error) {
	s.mu.Lock()
	claims := make([]*claim, 0, len(s.claims))
	for _, k := range s.claims {
		claims = append(claims, k)
	}
	s.mu.Unlock()
	started := time.Now()
	s.renewals(1)
	var lost []driver.Loss
	for _, k := range claims {
		select {
		case k.turn <- struct{}{}:
		default:
			continue
		}
		held, err := true, error(nil)
		if k.held {
			held, err = s.lock.renew(ctx, &k.grip, s.ttl)
		}
		<-k.turn
		if err != nil {
			return driver.Renewal{}, fmt.Errorf("flawed: %w", err)
		}
		if !held {
			lost = append(lost, driver.Loss{ID: k.grip.id, Err: driver.ErrGone})
		}
	}
	return driver.Renewal{Valid: s.lock.valid(s.ttl, time.Since(started)), Lost: lost}, nil
}

// Close implements driver.Session.
func (s *session) Close(ctx context.Context) error {
	s.mu.Lock()
	claims := make([]driver.Claim, 0, len(s.claims))
	for id, k := range s.claims {
		claims = append(claims, driver.Claim{ID: id, Name: k.grip.key})
	}
	s.mu.Unlock()
	for _, c := range claims {
		if _, err := s.Release(ctx, c); err != nil {
			return err
		}
	}
	return nil
}
