package pglock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Wait implements driver.Session: it blocks until a message or an answer has moved the claim's state. It asks by itself only when
// who is in its way has run out of time, and once after this process has begun to listen.
func (s *session) Wait(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	c, err := s.claim(dc)
	if err != nil {
		return driver.Grant{}, err
	}
	for {
		s.mu.Lock()
		st := c.state
		s.mu.Unlock()
		if st == out { // Acquire had no answer
			return s.Acquire(ctx, dc)
		}
		if st != waiting {
			return s.answer(c, nil)
		}
		var e *ear
		if s.d.direct {
			var deaf error
			if e, deaf = s.d.listen(ctx); deaf != nil {
				if ctx.Err() != nil || s.d.ctx.Err() != nil {
					return s.answer(c, deaf)
				}
				s.soon(c)
			}
		}
		s.mu.Lock()
		again, ask := c.again, c.state == waiting && (c.asked != e || !c.again.IsZero() && !time.Now().Before(c.again))
		under := c.Landing()
		s.mu.Unlock()
		if under == nil && ask {
			// Subscribe, then look: what was told before that, nobody heard.
			if err := s.ask(ctx, c, false); err != nil {
				s.later(c)
				return s.answer(c, err)
			}
			continue
		}
		var due <-chan time.Time
		timer := time.NewTimer(time.Until(again))
		if under == nil && !again.IsZero() {
			due = timer.C
		}
		var deafened <-chan struct{}
		if e != nil {
			deafened = e.done
		}
		select {
		case <-c.change:
		case <-under:
		case <-due:
		case <-deafened:
		case <-ctx.Done():
			err = ctx.Err()
		}
		timer.Stop()
		if err != nil {
			return s.answer(c, err)
		}
	}
}

// later has a claim whose question failed ask again after a while, whoever calls Wait then.
func (s *session) later(c *claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.state == waiting {
		c.again = time.Now().Add(10 * time.Millisecond)
	}
}

// soon has a claim ask that nobody can tell, unless it is about to.
func (s *session) soon(c *claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := time.Now().Add(poll); c.again.IsZero() || c.again.After(at) {
		c.again = at
	}
}
