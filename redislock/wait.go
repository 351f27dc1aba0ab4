package redislock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
)

// Wait implements driver.Session: it blocks until a message or an answer has moved the claim's
// state. It asks by itself only when it is the head of a line and what it waits for expires, or
// when its subscription is lost.
func (s *session) Wait(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	c, err := s.Claim(dc)
	if err != nil {
		return driver.Grant{}, err
	}
	for {
		s.Mu.Lock()
		state, news, at, landing := c.State, c.News, c.recheck.At, c.Landing()
		s.Mu.Unlock()
		switch {
		case state == redisstore.Unsent: // Acquire had no answer
			return s.Acquire(ctx, dc)
		case state != redisstore.Waiting || news: // the holder has changed, or turns out not to be a lock
			return s.Answer(c, nil)
		case landing != nil:
			at = time.Time{}
		case !at.IsZero() && !time.Now().Before(at):
			if err := s.Call(ctx, c, s.enter); err != nil {
				s.askLater(c)
				return s.Answer(c, err)
			}
			continue
		}
		if err := c.Pause(ctx, at, landing, nil); err != nil {
			return s.Answer(c, err)
		}
	}
}

// askLater makes a claim whose request failed ask again after a while, in the next Wait.
func (s *session) askLater(c *claim) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if c.State == redisstore.Waiting {
		c.recheck.At = time.Now().Add(10 * time.Millisecond)
	}
}
