package redissonlock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
)

// Wait implements driver.Session: it blocks until an answer has moved the claim's state. It asks by
// itself when its group is due and no other claim of the group is asking.
func (s *session) Wait(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	c, err := s.Claim(dc)
	if err != nil {
		return driver.Grant{}, err
	}
	for {
		s.Mu.Lock()
		state, news, landing, g := c.State, c.News, c.Landing(), c.group
		if state != redisstore.Waiting || news || g == nil {
			s.Mu.Unlock()
			if state == redisstore.Unsent { // Acquire had no answer
				return s.Acquire(ctx, dc)
			}
			return s.Answer(c, nil)
		}
		now := time.Now()
		asks := g.due(now) && !g.asking && landing == nil
		at, changed := g.at, g.changed
		s.Mu.Unlock()
		if asks {
			if err := s.Call(ctx, c, func(ctx context.Context, c *claim) error { return s.askForAll(ctx, c, g) }); err != nil {
				return s.Answer(c, err)
			}
			continue
		}
		if !at.After(now) {
			at = time.Time{} // another waiter asks
		}
		if err := c.Pause(ctx, at, landing, changed); err != nil {
			return s.Answer(c, err)
		}
	}
}

// askForAll asks once for all waiters of the group, unless one of them is asking.
func (s *session) askForAll(ctx context.Context, c *claim, g *group) error {
	if !g.begin() {
		return nil
	}
	err := s.look(ctx, c, g)
	g.done(err)
	return err
}
