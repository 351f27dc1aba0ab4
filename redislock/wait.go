package redislock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Wait implements driver.Session: it blocks until a message or an answer has moved the claim's state. It asks by itself
// only when the head of a line sees that what stands in its way is over, or when its subscription has ended.
func (s *session) Wait(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	c, err := s.claim(dc)
	if err != nil {
		return driver.Grant{}, err
	}
	for {
		s.mu.Lock()
		state, news, at := c.state, c.news, c.recheck.At
		under := c.Landing()
		s.mu.Unlock()
		if state != waiting {
			if state == unsent { // Acquire had no answer
				return s.Acquire(ctx, dc)
			}
			return s.answer(c, nil)
		}
		if news { // somebody else is in the way, or is seen to be something else than a lock
			return s.answer(c, nil)
		}
		var due <-chan time.Time
		var timer *time.Timer
		if under == nil && !at.IsZero() {
			if left := time.Until(at); left > 0 {
				timer = time.NewTimer(left)
				due = timer.C
			} else if err := s.fly(ctx, c, func(ctx context.Context) error { return s.enter(ctx, c) }); err != nil {
				s.later(c)
				return s.answer(c, err)
			} else {
				continue
			}
		}
		select {
		case <-c.change:
		case <-under:
		case <-due:
		case <-ctx.Done():
			if timer != nil {
				timer.Stop()
			}
			return s.answer(c, ctx.Err())
		}
		if timer != nil {
			timer.Stop()
		}
	}
}

// later has a claim whose question failed ask again after a while, whoever calls Wait then.
func (s *session) later(c *claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.state == waiting {
		c.recheck.At = time.Now().Add(10 * time.Millisecond)
	}
}
