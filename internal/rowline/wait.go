package rowline

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Wait implements driver.Session: it blocks until a message or an answer has moved the claim's
// state. It asks by itself only when who is in its way has run out of time, and once after this
// process has begun to listen.
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
			// The store let it in, a Renew began and found it waiting, and only then the answer came. It
			// would be trusted for as long as that Renew says, and is held for as long as it was when it was
			// let in. A Renew that begins from now on knows it as held.
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
		var ear Ear
		var deaf error
		if s.d.Ears != nil {
			ear, deaf = s.d.Ears.Listen(ctx, c)
		}
		if deaf != nil && (ctx.Err() != nil || s.d.ctx.Err() != nil) {
			return s.answer(c, deaf)
		}
		s.mu.Lock()
		if deaf != nil {
			c.soon(poll)
		}
		again, ask := c.again, c.state == Waiting && (c.asked != ear || !c.again.IsZero() && !time.Now().Before(c.again))
		under := c.Landing()
		s.mu.Unlock()
		if under == nil && ask {
			// Subscribe, then look: what was told before that, nobody heard.
			if err := s.ask(ctx, c, false); err != nil {
				s.mu.Lock()
				c.again = time.Now().Add(10 * time.Millisecond) // whoever calls Wait then
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
		case <-ear:
		case <-ctx.Done():
			err = ctx.Err()
		}
		timer.Stop()
		if err != nil {
			return s.answer(c, err)
		}
	}
}
