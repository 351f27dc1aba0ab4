package rowline

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Wait implements driver.Session: it blocks until a message or an answer has moved the claim's
// state. It asks by itself only when the claims before it expire, and once after this process has
// subscribed.
func (s *Session) Wait(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	c, err := s.claim(dc, false)
	if err != nil {
		return driver.Grant{}, err
	}
	for {
		s.mu.Lock()
		st, passed := c.state, c.passed
		s.mu.Unlock()
		if st == Out { // Acquire had no answer
			return s.Acquire(ctx, dc)
		}
		if st == Held && passed {
			// The store granted it, a Renew began and found it waiting, and only then the answer
			// came. It would be trusted for as long as that Renew says, but the store counts from
			// the grant. A Renew that begins from now on knows it as held.
			if err := s.ask(ctx, c, true); err != nil {
				return s.answer(c, err)
			}
			s.mu.Lock()
			c.passed = false
			s.mu.Unlock()
			continue
		}
		if st != Waiting {
			return s.answer(c, nil)
		}
		var sub Subscription
		var failure error
		if s.d.Notifier != nil {
			sub, failure = s.d.Notifier.Listen(ctx, c)
		}
		if failure != nil && (ctx.Err() != nil || s.d.ctx.Err() != nil) {
			return s.answer(c, failure)
		}
		s.mu.Lock()
		if failure != nil {
			c.soon(poll)
		}
		again, ask := c.again, c.state == Waiting && (c.asked != sub || !c.again.IsZero() && !time.Now().Before(c.again))
		under := c.Landing()
		s.mu.Unlock()
		if under == nil && ask {
			// Subscribe, then ask: no message was received before that.
			if err := s.ask(ctx, c, false); err != nil {
				s.mu.Lock()
				c.again = time.Now().Add(10 * time.Millisecond) // in the next Wait
				s.mu.Unlock()
				return s.answer(c, err)
			}
			continue
		}
		timer := time.NewTimer(time.Until(again))
		due := timer.C
		if under != nil || again.IsZero() {
			due = nil
		}
		select {
		case <-c.change:
		case <-under:
		case <-due:
		case <-sub:
		case <-ctx.Done():
			err = ctx.Err()
		}
		timer.Stop()
		if err != nil {
			return s.answer(c, err)
		}
	}
}
