package redissonlock

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// part is one script of a renewal, and the claims that it is about.
type part struct {
	call    redisconn.Call
	about   []*claim
	version uint64 // that of the group of a claim that waits
}

// Renew implements driver.Session. What is held is renewed as Redisson's watchdog does it, a
// hundred a script, on a Cluster by slot; what waits asks, so that a message that was lost, or that
// another program never sent, costs a renewal's time at most; and what was released without an
// answer is released again. Everything goes out together.
func (s *session) Renew(ctx context.Context) (driver.Renewal, error) {
	s.Mu.Lock()
	if s.Closed {
		s.Mu.Unlock()
		return driver.Renewal{}, driver.ErrSessionLost
	}
	parts, lost := s.parts()
	s.Mu.Unlock()
	if len(parts) == 0 {
		return s.Renewed(ctx, 0, lost, nil)
	}
	calls := make([]redisconn.Call, len(parts))
	for i, p := range parts {
		calls[i] = p.call
	}
	replies, err := redisstore.Together(ctx, s.d.store.Run, s.RenewTimeout(ctx), calls)
	for i, reply := range replies {
		switch {
		case reply.Err == nil:
			lost = append(lost, s.renewed(parts[i], reply.Value)...)
		case errors.Is(reply.Err, driver.ErrRefused) && parts[i].call.Script == takeScript:
			s.recheck(parts[i].about[0]) // Wait asks, and returns the error
		case err == nil:
			err = reply.Err
		}
	}
	return s.Renewed(ctx, len(parts), lost, err)
}

// parts returns what is to be sent, and the claims that are lost, until they are released. Mu is
// held.
func (s *session) parts() (parts []part, lost []driver.Loss) {
	var holds []*claim
	for _, c := range s.Claims {
		switch {
		case c.Leaving:
			if c.Landing() == nil && !c.Left {
				parts = append(parts, part{call: s.releaseCall(c), about: []*claim{c}})
			}
		case c.State >= redisstore.Gone:
			lost = append(lost, c.Loss())
		case c.State == redisstore.Held:
			holds = append(holds, c)
		case c.State == redisstore.Waiting:
			parts = append(parts, part{call: s.takeCall(c), about: []*claim{c}, version: c.group.version})
		}
	}
	for _, some := range redisstore.Groups(s.d.store, holds, redisstore.PerScript, func(c *claim) string { return c.Name }) {
		call := redisconn.Call{Script: holdScript, Args: []string{s.TTLMS, s.KeepMS}, Again: redisconn.Idempotent}
		for _, c := range some {
			call.Keys = append(call.Keys, c.keys.name, c.keys.notes, c.keys.ownTime(c.Kind, c.field))
			call.Args = append(call.Args, c.field)
		}
		parts = append(parts, part{call: call, about: some})
	}
	return parts, lost
}

// renewed handles the answer to one part, and returns the claims that it shows to be lost.
func (s *session) renewed(p part, v any) []driver.Loss {
	c := p.about[0]
	switch p.call.Script {
	case holdScript:
		return s.Missing(p.about, v)
	case leaveScript:
		s.gone(c, v)
		return nil
	}
	a, err := parseAnswer(v)
	if err == nil {
		err = s.settle(c, a, p.version)
	}
	if errors.Is(err, driver.ErrRefused) {
		s.recheck(c) // Wait asks, and returns the error
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if !c.Leaving && c.State >= redisstore.Gone {
		return []driver.Loss{c.Loss()}
	}
	return nil
}

// recheck makes a claim that waits ask for its state.
func (s *session) recheck(c *claim) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if c.group != nil {
		c.group.recheck()
	}
}
