package redlock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redlock/internal/membership"
)

// Wait implements driver.Session: it blocks until a message or an answer has moved the claim's
// state. It asks a master by itself only when the head of the line there sees that what stands in
// its way is over, when the subscription there has ended, or when the master did not answer.
func (s *session) Wait(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	c, err := s.claim(dc)
	if err != nil {
		return driver.Grant{}, err
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		s.mu.Lock()
		state, settled, refusal := c.state, c.idle(), s.refusal(c)
		s.mu.Unlock()
		switch {
		case state == unsent: // Acquire had no answer
			return s.Acquire(ctx, dc)
		case state > waiting:
			return s.state(c)
		case refusal != nil:
			return driver.Grant{}, refusal
		}
		if settled {
			if next := s.recheck(ctx, c); !next.IsZero() {
				timer.Reset(time.Until(next))
			} else {
				timer.Stop()
			}
		}
		select {
		case <-c.change:
		case <-timer.C:
		case <-ctx.Done():
			return s.answerWait(c, ctx.Err())
		}
	}
}

// answerWait is the claim's state if it has moved on, else err.
func (s *session) answerWait(c *claim, err error) (driver.Grant, error) {
	s.mu.Lock()
	state := c.state
	s.mu.Unlock()
	if state > waiting {
		return s.state(c)
	}
	return driver.Grant{}, err
}

// recheck asks the masters where it is time to, and returns when the next one is to be asked.
func (s *session) recheck(ctx context.Context, c *claim) (next time.Time) {
	s.mu.Lock()
	now := time.Now()
	due := make([]bool, len(c.nodes))
	some := false
	for i := range c.nodes {
		at := c.nodes[i].recheck.At
		switch {
		case at.IsZero():
		case !at.After(now.Add(2 * time.Millisecond)): // masters that gave the same answer are asked together
			due[i], some = true, true
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	s.mu.Unlock()
	if !some {
		return next
	}
	failed := s.subscribeAll(ctx, c)
	f := newInflight(now)
	f.late = now // nobody waits for it, so nobody is in time
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.leaving {
		return time.Time{}
	}
	f.propose(s.d, c.Name, 0)
	for i, n := range s.d.nodes {
		switch {
		case !due[i]:
		case failed[i] != nil:
			c.nodes[i].recheck.Retry(now)
			if at := c.nodes[i].recheck.At; next.IsZero() || at.Before(next) {
				next = at
			}
		default:
			s.ask(c, n, f)
		}
	}
	return next
}

// refusal is the error of a claim that so many masters refuse for good that the others are no
// majority, or nil. s.mu is held.
func (s *session) refusal(c *claim) error {
	var refusals []error
	for i := range c.nodes {
		if err := c.nodes[i].refused; err != nil {
			refusals = append(refusals, err)
		}
	}
	if n := len(s.d.nodes); n-len(refusals) < s.d.quorum {
		return membership.TooFew(n, n-len(refusals), len(refusals), refusals, nil)
	}
	return nil
}
