package redissonlock

import (
	"context"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// Release implements driver.Session. One script removes the claim and wakes waiters.
func (s *session) Release(ctx context.Context, dc driver.Claim) (bool, error) {
	return s.Session.Release(ctx, dc, s.leave)
}

// leave removes the claim.
func (s *session) leave(ctx context.Context, c *claim) error {
	s.Mu.Lock()
	call, stood := s.releaseCall(c), c.State == redisstore.Held && !c.Unsure
	s.Mu.Unlock()
	var twice redisstore.Resent
	call.Again = twice.Again
	v, err := s.d.store.Run.Run(ctx, call)
	if err != nil {
		return s.Undecided(c, err)
	}
	if bool(twice) && stood && v != int64(1) {
		// The connection ended before the first answer. If the second request had found the claim,
		// it would have removed it. That it has not does not show whether the first one did.
		return s.Undecided(c, redisstore.ErrTwice)
	}
	s.gone(c, v)
	return nil
}

// gone records the answer of the script leave: 1 if the claim was held until now.
func (s *session) gone(c *claim, v any) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Gone(c, v == int64(1))
}

// releaseCall returns the call that releases c. If a request for c may still be in flight, the
// script records that c is released, so that this request takes nothing when it arrives. The caller
// holds Mu.
func (s *session) releaseCall(c *claim) redisconn.Call {
	remember := ""
	if c.Doubt {
		remember = s.KeepMS
	}
	call := s.d.releaseCall(c.keys, c.field, c.Kind, remember)
	call.Behind, call.Again = c.Doubt, redisconn.Idempotent
	return call
}

// releaseCall returns the call that releases a claim, of this process or another one.
func (d *Driver) releaseCall(k keys, field string, kind driver.Kind, remember string) redisconn.Call {
	return redisconn.Call{
		Script: leaveScript, Keys: []string{k.name, k.notes},
		Args: []string{field, redisstore.Letter(kind), d.publish, k.channel(kind), k.own, remember},
	}
}

// Close implements driver.Session.
func (s *session) Close(ctx context.Context) error {
	err := s.Session.Close(ctx, func(c *claim) redisconn.Call {
		s.Mu.Lock()
		defer s.Mu.Unlock()
		return s.releaseCall(c)
	}, s.gone)
	s.d.sessions.Remove(s)
	return err
}
