package etcdlock

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/driver"
)

// Wait implements driver.Session: it blocks until an event has moved the claim's state. Subscribe, then look, then wait: the view looks for
// all who wait when it has begun to hear.
func (s *session) Wait(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	c, err := s.claim(dc)
	if err != nil {
		return driver.Grant{}, err
	}
	s.mu.Lock()
	st := c.state
	s.mu.Unlock()
	switch st {
	case out: // Acquire had no answer
		return s.Acquire(ctx, dc)
	case waiting:
	default:
		return s.answer(c, nil)
	}
	v, err := s.d.view(c)
	if err != nil {
		return s.answer(c, err)
	}
	defer v.leave(c)
	select {
	case <-v.ready:
	case <-ctx.Done():
		return s.answer(c, ctx.Err())
	}
	v.settle()
	for {
		s.mu.Lock()
		st, missed := c.state, c.missed
		s.mu.Unlock()
		if st != waiting {
			return s.answer(c, nil)
		}
		if missed { // broken, or with the session, or just gone
			return s.Acquire(ctx, dc)
		}
		select {
		case <-c.change:
		case <-v.over:
			if v.err != nil {
				s.d.options.Logger.Debug("etcdlock: a watch has ended", "name", c.Name, "error", v.err)
			}
			pause(ctx, again)
			if s.d.ctx.Err() != nil {
				return s.answer(c, errClosed)
			}
			if err := ctx.Err(); err != nil {
				return s.answer(c, err)
			}
			if v.err != nil {
				return s.answer(c, fmt.Errorf("etcdlock: wait: %w", v.err))
			}
			return s.answer(c, nil) // to be called again
		case <-ctx.Done():
			return s.answer(c, ctx.Err())
		}
	}
}
