package redislock

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// Release implements driver.Session. One script frees the name, or hands it on if others wait.
func (s *session) Release(ctx context.Context, dc driver.Claim) (bool, error) {
	c, err := s.releasing(dc)
	if err != nil {
		return false, err
	}
	return c.Release(ctx, &s.mu, s.d.conn.Abandons(), s.timeout, func(ctx context.Context) error { return s.leave(ctx, c) })
}

// releasing returns the claim with no request but its Release from now on.
func (s *session) releasing(dc driver.Claim) (*claim, error) {
	if err := check(dc); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claims.Leaving(dc.ID, s.closed, func() *claim { return s.newClaim(dc) }), nil
}

// leave takes the claim out.
func (s *session) leave(ctx context.Context, c *claim) error {
	s.mu.Lock()
	plain, doubt := c.state == held && c.exclusive() && !c.doubt, c.doubt
	stood := c.state == held && !c.Unsure
	s.mu.Unlock()
	twice := false
	again := func() bool {
		twice = true
		return true
	}
	line := func(ctx context.Context) (any, error) {
		call := s.lineCall(c, nil, nil, false)
		call.Behind, call.Again = doubt, again
		return s.d.run.Run(ctx, call)
	}
	var v any
	var err error
	if plain {
		v, err = s.d.batch.send(ctx, request{keys: &c.keys, value: layout + c.ID + "-", leave: line, again: again})
	}
	if !plain || err == nil && v == int64(0) { // the short script of a batch could not decide
		v, err = line(ctx)
	}
	if err != nil {
		return undecided(c, err)
	}
	if twice && stood && v != int64(1) && !wasHeld(v) {
		// The connection ended before the first answer. That the claim still stood there, the second can tell; that it did not,
		// cannot tell whether the first took it out.
		return undecided(c, errTwice)
	}
	if v == int64(1) {
		s.d.crowd.Set(c.Name, false)
		s.gone(c, true)
		return nil
	}
	r, err := parseLineReply(v)
	if err != nil {
		return undecided(c, err)
	}
	s.gone(c, r.left == 1)
	return nil
}

var errTwice = errors.New("the connection ended before the answer, and when asked again the server has the claim no more")

// wasHeld reports whether the long script has answered that the claim that left was held.
func wasHeld(v any) bool {
	r, err := parseLineReply(v)
	return err == nil && r.left == 1
}

func undecided(c *claim, err error) error {
	return fmt.Errorf("redislock: release %q: %w", c.Name, err)
}

// gone notes that the claim has left. If a request for it may still be under way, it is watched for a while.
func (s *session) gone(c *claim, wasHeld bool) {
	s.mu.Lock()
	c.Left, c.Was = true, wasHeld
	c.end(gone)
	s.forget(c)
	doubt := c.doubt
	s.mu.Unlock()
	if doubt {
		s.d.haunted(c.keys, c.ID, s.ttl+s.timeout)
	}
}

// Requeue implements driver.Requeuer: the long script does both at once.
func (s *session) Requeue(ctx context.Context, oldClaim, nextClaim driver.Claim) (driver.Grant, bool, error) {
	old, err := s.releasing(oldClaim)
	if err != nil {
		return driver.Grant{}, false, err
	}
	next, err := s.claim(nextClaim)
	if err != nil {
		return driver.Grant{}, false, err
	}
	wasHeld := false
	err = s.fly(ctx, old, func(ctx context.Context) error {
		return s.fly(ctx, next, func(ctx context.Context) (err error) {
			if wasHeld, err = s.turn(ctx, old, next); err != nil {
				s.mu.Lock()
				old.Unsure = true
				s.mu.Unlock()
			}
			return err
		})
	})
	if err != nil {
		return driver.Grant{}, false, err
	}
	g, err := s.answer(next, nil)
	return g, wasHeld, err
}

// turn has old leave and next join.
func (s *session) turn(ctx context.Context, old, next *claim) (wasHeld bool, err error) {
	var e *ear
	if next.Queue {
		if e, err = s.d.listen(ctx, next.Name); err != nil {
			return false, err
		}
		s.d.audience.Add(next.ID, s)
	}
	s.mu.Lock()
	next.listens(e)
	stood := old.state == held && !old.Unsure
	s.mu.Unlock()
	started := s.sent(next)
	call := s.lineCall(old, next, e, false)
	twice, again := false, s.again(next)
	call.Again = func() bool {
		twice = again()
		return twice
	}
	v, err := s.d.run.Run(ctx, call)
	if err != nil {
		return false, s.failed(next, started, err)
	}
	r, err := parseLineReply(v)
	if err != nil {
		return false, s.failed(next, started, err)
	}
	if twice && stood && r.left == 0 { // as in leave; both are to be released now
		return false, s.failed(next, started, errTwice)
	}
	s.gone(old, r.left == 1)
	return r.left == 1, s.settle(next, e, r)
}

// leaveAll takes many claims out together.
func (s *session) leaveAll(ctx context.Context, claims []*claim) error {
	err := redisstore.LeaveAll(ctx, s.d.run, s.timeout, claims, func(c *claim) redisconn.Call {
		call := s.lineCall(c, nil, nil, false)
		call.Behind, call.Again = true, redisconn.Idempotent
		return call
	}, func(c *claim, v any) { s.gone(c, v == int64(1) || wasHeld(v)) })
	if err != nil {
		return fmt.Errorf("redislock: %w", err)
	}
	return nil
}
