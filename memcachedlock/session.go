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

// session is the claims that are renewed together. Nothing stands in a server for it.
type session struct {
	d       *Driver
	owner   []byte
	seconds int

	mu      sync.Mutex
	claims  sessions.Claims[*claim]
	closed  bool
	began   time.Time // the last renewal
	partial bool      // the last renewal was not answered for some claims
}

// Valid implements driver.Session: two seconds less than what the items have, since the server's clock may be so much behind when one is
// written, and the drift between its clock and ours.
func (s *session) Valid() time.Duration {
	ttl := time.Duration(s.life()) * time.Second
	return ttl - 2*time.Second - ttl/100
}

// life is for how many seconds an item is written.
func (s *session) life() int { return s.seconds + 1 }

func (s *session) fresh(c driver.Claim, key string) func() *claim {
	return func() *claim { return &claim{Claim: c, s: s, key: key, server: s.d.server(key)} }
}

// Acquire implements driver.Session.
func (s *session) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return s.turn(ctx, c, false)
}

// Wait implements driver.Session: nobody is told, so it looks.
func (s *session) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return driver.Poll(ctx, soonest, latest, func(ctx context.Context) (driver.Grant, error) { return s.turn(ctx, c, true) })
}

// fly makes a call for a claim when the one before is over.
func (s *session) fly(ctx context.Context, c *claim, call func(ctx context.Context) error) error {
	return c.Fly(ctx, &s.mu, true, s.d.options.Timeout, call)
}

// turn asks for a claim, and returns its state.
func (s *session) turn(ctx context.Context, dc driver.Claim, waits bool) (driver.Grant, error) {
	key, err := s.d.check(dc)
	if err != nil {
		return driver.Grant{}, err
	}
	s.mu.Lock()
	c := s.claims.Of(dc.ID, s.fresh(dc, key))
	s.mu.Unlock()
	err = s.fly(ctx, c, func(ctx context.Context) error { return c.ask(ctx, waits) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if waits && err == nil && c.held && c.passed {
		// It was let in, a renewal began and passed over one that waits, and only then the answer came. It would be trusted for as long as
		// that renewal says, and has its item for as long as it was written for. A renewal that begins from now on knows it as held.
		s.mu.Unlock()
		err = s.fly(ctx, c, func(ctx context.Context) error { return c.hold(ctx, false, false) })
		s.mu.Lock()
		c.passed = err != nil
	}
	if !c.held && !c.unsure && c.Landing() == nil {
		s.claims.Forget(c.ID, c) // nothing of it stands there
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

// Release implements driver.Session.
func (s *session) Release(ctx context.Context, dc driver.Claim) (bool, error) {
	key, err := s.d.check(dc)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	c := s.claims.Leaving(dc.ID, s.closed, s.fresh(dc, key))
	s.mu.Unlock()
	return s.release(ctx, c)
}

func (s *session) release(ctx context.Context, c *claim) (bool, error) {
	return c.Release(ctx, &s.mu, true, s.d.options.Timeout, c.leave)
}

// failures does something for claims, side by side, and returns what went wrong for which.
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

// Renew implements driver.Session. Where some servers answer and others do not, the session is renewed all the same, late in its time,
// without the claims of those: they are given up. But not by the first renewal that meets this.
func (s *session) Renew(ctx context.Context) (driver.Renewal, error) {
	var about []*claim
	s.mu.Lock()
	closed := s.closed
	s.began = time.Now()
	for _, c := range s.claims {
		switch {
		case c.Leaving && !c.Left && c.Landing() == nil: // its Release had no answer, and perhaps nobody repeats it
			go func() { _, _ = s.release(context.Background(), c) }()
		case !c.Leaving && c.lost == nil && (c.held || c.unsure):
			about = append(about, c)
		}
	}
	s.mu.Unlock()
	if closed {
		return driver.Renewal{}, driver.ErrSessionLost
	}
	failed := failures(about, func(c *claim) error {
		return s.fly(ctx, c, func(ctx context.Context) error { return c.hold(ctx, false, false) })
	})
	var err error
	if len(about) == 0 {
		err = s.d.reach(ctx)
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
	if s.d.sessions.Closed() {
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
	s.d.sessions.Remove(s)
	return err
}
