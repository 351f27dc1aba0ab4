package memcachedlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// session is the claims that are renewed together. Servers keep nothing for it.
type session struct {
	*cluster
	all *sessions.Set[*session]

	common
	claims  sessions.Claims[*claim]
	partial bool // the last renewal was not answered for some claims
}

// Valid implements driver.Session: two seconds less than what the items have, since the server's
// clock may be so much behind when one is written, and the drift between its clock and ours.
func (s *session) Valid() time.Duration {
	ttl := time.Duration(s.life()) * time.Second
	return ttl - 2*time.Second - ttl/100
}

func (s *session) fresh(c driver.Claim, key string) func() *claim {
	return func() *claim { return &claim{Claim: c, s: &s.common, key: key, server: s.server(key)} }
}

// Acquire implements driver.Session.
func (s *session) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return s.turn(ctx, c, false)
}

// A claim that waits looks again between soonest and latest.
const soonest, latest = 10 * time.Millisecond, 250 * time.Millisecond

// Wait implements driver.Session: nothing tells of a release, so it polls.
func (s *session) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return driver.Poll(ctx, soonest, latest, func(ctx context.Context) (driver.Grant, error) { return s.turn(ctx, c, true) })
}

// fly makes a call for a claim when the one before is over.
func (s *session) fly(ctx context.Context, c *claim, call func(ctx context.Context) error) error {
	return c.Fly(ctx, &s.mu, true, s.options.Timeout, call)
}

// turn makes a request for a claim, and returns its state.
func (s *session) turn(ctx context.Context, dc driver.Claim, waits bool) (driver.Grant, error) {
	key, err := s.options.check(dc)
	if err != nil {
		return driver.Grant{}, err
	}
	s.mu.Lock()
	c := s.claims.Of(dc.ID, s.fresh(dc, key))
	s.mu.Unlock()
	err = s.fly(ctx, c, func(ctx context.Context) error { return c.ask(ctx, waits) })
	if waits && err == nil && c.passedOver() {
		// It was granted, a renewal began and passed over one that waits, and only then the answer
		// came. It would be trusted for as long as that renewal says, and has its item for as long
		// as it was written for. A renewal that begins from now on knows it as held.
		err = s.renew(ctx, c)
		c.set(func() { c.passed = err != nil })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.held && !c.unsure && c.Landing() == nil {
		s.claims.Forget(c.ID, c) // it has no item
	}
	switch {
	case s.closed:
		return driver.Grant{}, driver.ErrSessionLost
	case c.lost != nil:
		return driver.Grant{}, c.lost
	case err != nil:
		return driver.Grant{}, fmt.Errorf("memcachedlock: acquire %q: %w", c.Name, err)
	case c.held:
		return driver.Grant{Held: true, Fence: c.fence}, nil
	}
	return driver.Grant{Holder: c.holder}, nil
}

// renew renews the item of a claim that is held, or may be.
func (s *session) renew(ctx context.Context, c *claim) error {
	return s.fly(ctx, c, func(ctx context.Context) error { return c.hold(ctx, false, false) })
}

// Release implements driver.Session.
func (s *session) Release(ctx context.Context, dc driver.Claim) (bool, error) {
	key, err := s.options.check(dc)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	c := s.claims.Leaving(dc.ID, s.closed, s.fresh(dc, key))
	s.mu.Unlock()
	return s.release(ctx, c)
}

func (s *session) release(ctx context.Context, c *claim) (bool, error) {
	was, err := c.Release(ctx, &s.mu, true, s.options.Timeout, c.leave)
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Left {
		s.claims.Forget(c.ID, c)
	}
	return was, err
}

// failures calls do for each claim, side by side, and returns the errors.
func failures(claims []*claim, do func(c *claim) error) map[*claim]error {
	var mu sync.Mutex
	var all sync.WaitGroup
	failed := map[*claim]error{}
	for _, c := range claims {
		all.Go(func() {
			if err := do(c); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed[c] = err
			}
		})
	}
	all.Wait()
	return failed
}

// Renew implements driver.Session. Where some servers answer and others do not, the session is
// renewed late in its time without the claims of the others, which are lost. But the first renewal
// that meets this fails.
func (s *session) Renew(ctx context.Context) (driver.Renewal, error) {
	var about []*claim
	s.mu.Lock()
	closed := s.closed
	s.began = time.Now()
	for _, c := range s.claims {
		switch {
		case c.Leaving && !c.Left && c.Landing() == nil:
			// Its Release had no answer, and perhaps nobody repeats it.
			go func() { _, _ = s.release(context.Background(), c) }()
		case !c.Leaving && c.lost == nil && (c.held || c.unsure):
			about = append(about, c)
		}
	}
	s.mu.Unlock()
	if closed {
		return driver.Renewal{}, driver.ErrSessionLost
	}
	failed := failures(about, func(c *claim) error { return s.renew(ctx, c) })
	var err error
	if len(about) == 0 {
		err = s.reach(ctx)
	}
	for _, err = range failed {
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ends := ctx.Deadline()
	early := !s.partial || !ends || time.Until(at) > s.Valid()/3
	if s.partial = len(failed) > 0; err != nil && (early || len(failed) == len(about)) {
		return driver.Renewal{}, fmt.Errorf("memcachedlock: renew: %w", err)
	}
	r := driver.Renewal{Valid: s.Valid()}
	for _, c := range s.claims {
		if failed[c] != nil && c.held && c.lost == nil {
			c.lost = driver.ErrGone
		}
		if c.lost != nil && !c.Leaving {
			r.Lost = append(r.Lost, driver.Loss{ID: c.ID, Err: c.lost})
		}
	}
	return r, nil
}

// Close implements driver.Session.
func (s *session) Close(ctx context.Context) error {
	if s.all.Closed() {
		return nil // with its driver
	}
	s.mu.Lock()
	s.closed = true
	all := s.claims.AllLeaving()
	s.mu.Unlock()
	var err error
	for _, why := range failures(all, func(c *claim) error { _, err := s.release(ctx, c); return err }) {
		err = errors.Join(err, why)
	}
	s.all.Remove(s)
	return err
}
