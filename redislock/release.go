package redislock

import (
	"context"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// Release implements driver.Session. One script frees the name, or hands it on if others wait.
func (s *session) Release(ctx context.Context, dc driver.Claim) (bool, error) {
	return s.Session.Release(ctx, dc, s.release)
}

// release releases the claim: by the short script if it holds and surely no claim waits, else by
// the long one.
func (s *session) release(ctx context.Context, c *claim) error {
	s.Mu.Lock()
	plain, doubt := c.State == redisstore.Held && c.exclusive() && !c.Doubt, c.Doubt
	stood := c.State == redisstore.Held && !c.Unsure
	s.Mu.Unlock()
	var twice redisstore.Resent
	line := func(ctx context.Context) (any, error) {
		call := s.lineCall(c, nil, nil, false)
		call.Behind, call.Again = doubt, twice.Again
		return s.d.store.Run.Run(ctx, call)
	}
	var v any
	var err error
	if plain {
		v, err = s.d.send(ctx, request{script: freeScript, keys: &c.keys, value: layout + c.ID + "-", free: line, again: twice.Again})
	}
	if !plain || err == nil && v == int64(0) { // the short script of a batch could not decide
		v, err = line(ctx)
	}
	if err == nil && v != int64(1) {
		_, err = parseLineReply(v)
	}
	if err != nil {
		return s.Undecided(c, err)
	}
	held := wasHeld(v)
	if bool(twice) && stood && !held {
		// The connection ended before the first answer. If the second request had found the claim,
		// it would have removed it. That it has not does not show whether the first one did.
		return s.Undecided(c, redisstore.ErrTwice)
	}
	if v == int64(1) {
		s.d.contended.Set(c.Name, false)
	}
	s.released(c, held)
	return nil
}

// released records that the claim is released. If a request for it may still be in flight, it is
// released again for a while.
func (s *session) released(c *claim, wasHeld bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Gone(c, wasHeld)
	if c.Doubt {
		s.d.orphans.Add(s.d.releaseCall(c.keys, c.ID), s.TTL+s.Timeout)
	}
}

// Requeue implements driver.Requeuer: the long script does both at once.
func (s *session) Requeue(ctx context.Context, oldClaim, nextClaim driver.Claim) (driver.Grant, bool, error) {
	old, err := s.Leaving(oldClaim)
	if err != nil {
		return driver.Grant{}, false, err
	}
	next, err := s.Claim(nextClaim)
	if err != nil {
		return driver.Grant{}, false, err
	}
	wasHeld := false
	err = s.Call(ctx, old, func(ctx context.Context, old *claim) error {
		return s.Call(ctx, next, func(ctx context.Context, next *claim) (err error) {
			if wasHeld, err = s.requeue(ctx, old, next); err != nil {
				s.Mu.Lock()
				old.Unsure = true
				s.Mu.Unlock()
			}
			return err
		})
	})
	if err != nil {
		return driver.Grant{}, false, err
	}
	g, err := s.Answer(next, nil)
	return g, wasHeld, err
}

// requeue makes old leave and next join, by one script.
func (s *session) requeue(ctx context.Context, old, next *claim) (wasHeld bool, err error) {
	sub, err := s.listen(ctx, next)
	if err != nil {
		return false, err
	}
	s.Mu.Lock()
	next.sub, next.stale = sub, false
	stood := old.State == redisstore.Held && !old.Unsure
	s.Mu.Unlock()
	call := s.lineCall(old, next, sub, false)
	twice, resend := false, s.Resend(next)
	call.Again = func() bool {
		twice = resend()
		return twice
	}
	r, err := s.runLine(ctx, next, call)
	if err != nil {
		return false, err
	}
	if twice && stood && r.left == 0 { // as in release; both are to be released now
		return false, s.failed(next, redisstore.ErrTwice)
	}
	s.released(old, r.left == 1)
	return r.left == 1, s.settle(next, sub, r)
}

// Close implements driver.Session.
func (s *session) Close(ctx context.Context) error {
	err := s.Session.Close(ctx, func(c *claim) redisconn.Call {
		call := s.lineCall(c, nil, nil, false)
		call.Behind, call.Again = true, redisconn.Idempotent
		return call
	}, func(c *claim, v any) { s.released(c, wasHeld(v)) })
	s.d.sessions.Remove(s)
	return err
}
