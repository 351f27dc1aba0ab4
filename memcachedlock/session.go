package memcachedlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/memcache"
	"github.com/interlock-go/interlock/internal/sessions"
)

// session is the claims that are renewed together. Nothing stands in a server for it.
type session struct {
	d       *Driver
	owner   []byte
	seconds int
	timeout time.Duration

	mu      sync.Mutex
	claims  sessions.Claims[*claim]
	closed  bool
	partial bool // the last renewal was not answered for some claims
}

// Valid implements driver.Session: two seconds less than what the items have, since the server's clock may be so much behind when one is
// written, and the drift between its clock and ours.
func (s *session) Valid() time.Duration {
	ttl := time.Duration(s.life()) * time.Second
	return ttl - 2*time.Second - ttl/100
}

// life is for how many seconds an item is written.
func (s *session) life() int { return s.seconds + 1 }

// claim returns what is known of c, from now on at least its ID.
func (s *session) claim(c driver.Claim) (*claim, error) {
	if err := s.d.check(c); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, driver.ErrSessionLost
	}
	return s.claims.Of(c.ID, func() *claim { return s.fresh(c) }), nil
}

func (s *session) fresh(c driver.Claim) *claim {
	key := s.d.Key(c.Name)
	return &claim{Claim: c, key: key, server: s.d.server(key)}
}

// value is what stands in a claim's item. The mutex is held.
func (s *session) value(c *claim) []byte {
	return value{Name: c.Name, ID: c.ID, Owner: s.owner, Note: []byte(c.Note), Passes: c.Passes, Fence: c.fence}.encode()
}

// Acquire implements driver.Session.
func (s *session) Acquire(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	c, err := s.claim(dc)
	if err != nil {
		return driver.Grant{}, err
	}
	return s.turn(ctx, c, false)
}

// Wait implements driver.Session: nobody is told, so it looks.
func (s *session) Wait(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	c, err := s.claim(dc)
	if err != nil {
		return driver.Grant{}, err
	}
	return driver.Poll(ctx, soonest, latest, func(ctx context.Context) (driver.Grant, error) { return s.turn(ctx, c, true) })
}

// turn asks for c, once the call before is over, and returns its state.
func (s *session) turn(ctx context.Context, c *claim, waits bool) (driver.Grant, error) {
	err := c.Fly(ctx, &s.mu, false, s.timeout, func(ctx context.Context) error { return s.ask(ctx, c, waits) })
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return driver.Grant{}, driver.ErrSessionLost
	case c.state == broken:
		return driver.Grant{}, driver.ErrBroken
	case c.state == gone:
		return driver.Grant{}, driver.ErrGone
	case err != nil:
		if c.state == out && !c.unsure && c.Landing() == nil {
			s.claims.Forget(c.ID, c) // nothing of it stands there
		}
		return driver.Grant{}, err
	case c.state == out:
		s.claims.Forget(c.ID, c)
	}
	g := driver.Grant{Held: c.state == held, Holder: c.holder}
	if g.Held {
		g.Fence, g.Holder = c.fence, nil
	}
	return g, nil
}

// ask renews c where it is held, and else takes its lock if that is free.
func (s *session) ask(ctx context.Context, c *claim, waits bool) (err error) {
	s.mu.Lock()
	st, leaving := c.state, c.Leaving || s.closed
	s.mu.Unlock()
	switch {
	case leaving:
		return fmt.Errorf("memcachedlock: %w: the claim is being released", driver.ErrNotSent)
	case st >= gone || st == held && waits:
		return nil
	case st == held:
		_, err = s.renew(ctx, []*claim{c})
	default:
		err = s.enter(ctx, c, waits)
	}
	if err != nil {
		return fmt.Errorf("memcachedlock: acquire %q: %w", c.Name, err)
	}
	return nil
}

// enter adds the item where there is none. Who waits looks first: most looks find one, and one that adds nothing needs no memory.
func (s *session) enter(ctx context.Context, c *claim, waits bool) error {
	for tried := range rounds {
		if tried > 0 || !waits {
			took, err := s.take(ctx, c)
			if err != nil || took {
				return err
			}
		}
		replies, err := c.server.Do(ctx, memcache.Get(c.key))
		if err == nil {
			err = replies[0].Err
		}
		if err != nil {
			return err
		}
		if replies[0].Status != memcache.Value {
			continue // who was there has left
		}
		it, err := read(replies[0])
		if err != nil {
			return err
		}
		if it.ID == c.ID && it.Name == c.Name { // an answer was lost
			s.mu.Lock()
			c.state, c.unsure, c.cas, c.fence = max(c.state, held), false, it.CAS, it.Fence
			s.mu.Unlock()
			_, err := s.renew(ctx, []*claim{c})
			return err
		}
		s.deny(c, it.holder())
		return nil
	}
	s.deny(c, nil) // to others, who come and go
	return nil
}

// take adds the item.
func (s *session) take(ctx context.Context, c *claim) (took bool, err error) {
	s.mu.Lock()
	request := memcache.Add(c.key, s.value(c), s.life())
	s.mu.Unlock()
	replies, err := c.server.Do(ctx, request)
	if err == nil {
		err = replies[0].Err
	}
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.unsure = c.unsure || !errors.Is(err, driver.ErrNotSent)
		return false, err
	}
	if replies[0].Status != memcache.Done {
		return false, nil
	}
	fence, err := token(replies[0])
	if err != nil { // a lock without a token is none
		_, _ = c.server.Do(ctx, memcache.Delete(c.key, replies[0].CAS))
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.state, c.unsure, c.cas, c.fence = max(c.state, held), false, replies[0].CAS, fence
	return true, nil
}

// deny takes in that another one holds.
func (s *session) deny(c *claim, by *driver.Holder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.holder, c.unsure = by, false
	if c.Queue {
		c.state = max(c.state, waiting)
	}
}

// renew writes the items of claims anew, those of which nobody knows whether they hold among them, and notes what became of each. It returns
// the claims that nobody could say anything of.
func (s *session) renew(ctx context.Context, claims []*claim) (failed map[*claim]error, err error) {
	became, failed := s.each(ctx, claims, func(c *claim) memcache.Request {
		if c.Leaving || c.state == broken { // which goes when its time is over
			return nil
		}
		return memcache.Swap(c.key, s.value(c), s.life(), c.cas)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, status := range became {
		switch {
		case c.Leaving || c.state == broken:
		case status == memcache.Done:
			c.state, c.unsure = max(c.state, held), false
		case c.state == held:
			c.state = gone
		default:
			c.unsure = false
		}
	}
	for _, why := range failed {
		err = why
	}
	return failed, err
}

// Renew implements driver.Session. Where some servers answer and others do not, the session is renewed all the same, late in its time,
// without the claims of those: they are given up. But not by the first renewal that meets this.
func (s *session) Renew(ctx context.Context) (driver.Renewal, error) {
	var about, stuck []*claim
	s.mu.Lock()
	closed := s.closed
	for _, c := range s.claims {
		switch {
		case c.Leaving && !c.Left && c.Landing() == nil:
			stuck = append(stuck, c) // its Release had no answer, and perhaps nobody repeats it
		case c.Leaving:
		case c.state == held || c.unsure:
			about = append(about, c)
		}
	}
	s.mu.Unlock()
	if closed {
		return driver.Renewal{}, driver.ErrSessionLost
	}
	for _, c := range stuck {
		go func() { _, _ = s.release(context.Background(), c) }()
	}
	var failed map[*claim]error
	var err error
	if len(about) == 0 {
		err = s.d.reach(sessions.Within(ctx, s.timeout))
	} else {
		failed, err = s.renew(sessions.Within(ctx, s.timeout), about)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ends := ctx.Deadline(); err != nil && (len(failed) == len(about) || !s.partial || !ends || time.Until(at) > s.Valid()/3) {
		s.partial = len(failed) > 0
		return driver.Renewal{}, fmt.Errorf("memcachedlock: renew: %w", err)
	}
	s.partial = len(failed) > 0
	r := driver.Renewal{Valid: s.Valid()}
	for c := range failed {
		if c.state == held && !c.Leaving {
			c.state = gone
		}
	}
	for _, c := range s.claims {
		if c.state >= gone && !c.Leaving {
			r.Lost = append(r.Lost, c.ID)
		}
	}
	return r, nil
}

// Release implements driver.Session.
func (s *session) Release(ctx context.Context, dc driver.Claim) (bool, error) {
	if err := s.d.check(dc); err != nil {
		return false, err
	}
	s.mu.Lock()
	c := s.claims.Leaving(dc.ID, s.closed, func() *claim { return s.fresh(dc) })
	s.mu.Unlock()
	return s.release(ctx, c)
}

// release deletes the claim's item, once. It stands behind whatever was sent for the claim, unless the connection has ended since: a server
// that was stopped may carry that out later. So one that had no answer is released once more when its time is over.
func (s *session) release(ctx context.Context, c *claim) (bool, error) {
	return c.Release(ctx, &s.mu, false, s.timeout, func(ctx context.Context) error {
		s.mu.Lock()
		late := c.unsure
		s.mu.Unlock()
		if err := s.leave(ctx, c); err != nil {
			return fmt.Errorf("memcachedlock: release %q: %w", c.Name, err)
		}
		if late {
			time.AfterFunc(s.timeout, func() {
				_ = s.leave(sessions.Within(context.Background(), s.timeout), c)
			})
		}
		return nil
	})
}

// leave deletes the items of claims that are there.
func (s *session) leave(ctx context.Context, claims ...*claim) (err error) {
	became, failed := s.each(ctx, claims, func(c *claim) memcache.Request { return memcache.Delete(c.key, c.cas) })
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, status := range became {
		if !c.Left {
			c.Left, c.Was = true, status == memcache.Done && c.state != broken
		}
		s.claims.Forget(c.ID, c)
	}
	for _, why := range failed {
		err = errors.Join(err, why)
	}
	return err
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
	for _, c := range all {
		c.Rest(ctx, &s.mu) // a request under way may take its lock
	}
	err := s.leave(sessions.Within(ctx, s.timeout), all...)
	s.d.sessions.Remove(s)
	if err != nil {
		return fmt.Errorf("memcachedlock: close a session: %w", errors.Join(err, ctx.Err()))
	}
	return nil
}
