package redissonlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// Release implements driver.Session. One script takes the claim out and tells those who wait.
func (s *session) Release(ctx context.Context, dc driver.Claim) (bool, error) {
	c, err := s.releasing(dc)
	if err != nil {
		return false, err
	}
	return c.Release(ctx, &s.d.mu, s.d.conn.Abandons(), s.timeout, func(ctx context.Context) error { return s.leave(ctx, c) })
}

// releasing returns the claim with no request but its Release from now on.
func (s *session) releasing(dc driver.Claim) (*claim, error) {
	if err := check(dc); err != nil {
		return nil, err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	c := s.claims.Leaving(dc.ID, s.closed, func() *claim { return s.newClaim(dc) })
	c.exit(time.Now())
	return c, nil
}

// leave takes the claim out.
func (s *session) leave(ctx context.Context, c *claim) error {
	s.d.mu.Lock()
	call, stood := s.leaveCall(c), c.state == held && !c.Unsure
	s.d.mu.Unlock()
	twice := false
	call.Again = func() bool {
		twice = true
		return true
	}
	v, err := s.d.run.Run(ctx, call)
	if err != nil {
		return undecided(c, err)
	}
	if twice && stood && v != int64(1) {
		// The connection ended before the first answer. That the claim still stood there, the second can tell; that it did not,
		// cannot tell whether the first took it out.
		return undecided(c, errTwice)
	}
	s.gone(c, v == int64(1))
	return nil
}

// leaveCall is a run of the script in which c leaves. If a request for c may still be under way, the script remembers
// that c is released: then that request finds it so whenever it arrives. d.mu is held.
func (s *session) leaveCall(c *claim) redisconn.Call {
	remember := ""
	if c.doubt {
		remember = s.keepMS
	}
	call := s.d.leaving(c.keys, c.field, c.Kind, remember)
	call.Behind, call.Again = c.doubt, redisconn.Idempotent
	return call
}

func (d *Driver) leaving(k keys, field string, kind driver.Kind, remember string) redisconn.Call {
	return redisconn.Call{
		Script: leaveScript, Keys: []string{k.name, k.notes},
		Args: []string{field, redisstore.Letter(kind), d.publish, k.channel(kind), k.own, remember},
	}
}

var errTwice = errors.New("the connection ended before the answer, and when asked again the server has the claim no more")

func undecided(c *claim, err error) error {
	return fmt.Errorf("redissonlock: release %q: %w", c.Name, err)
}

// gone notes that the claim has left.
func (s *session) gone(c *claim, wasHeld bool) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if c.Left {
		return
	}
	c.Left, c.Was = true, wasHeld
	c.end(gone, time.Now())
	s.forget(c)
}

// leaveAll takes many claims out together.
func (s *session) leaveAll(ctx context.Context, claims []*claim) error {
	err := redisstore.LeaveAll(ctx, s.d.run, s.timeout, claims, func(c *claim) redisconn.Call {
		s.d.mu.Lock()
		defer s.d.mu.Unlock()
		return s.leaveCall(c)
	}, func(c *claim, v any) { s.gone(c, v == int64(1)) })
	if err != nil {
		return fmt.Errorf("redissonlock: %w", err)
	}
	return nil
}
