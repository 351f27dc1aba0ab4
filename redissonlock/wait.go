package redissonlock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Wait implements driver.Session: it blocks until an answer has moved the claim's state. It asks by itself when its room
// is due and nobody else there asks.
func (s *session) Wait(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	c, err := s.claim(dc)
	if err != nil {
		return driver.Grant{}, err
	}
	for {
		s.d.mu.Lock()
		state, news, under, r := c.state, c.news, c.Landing(), c.room
		if state != waiting || news || r == nil {
			s.d.mu.Unlock()
			if state == unsent { // Acquire had no answer
				return s.Acquire(ctx, dc)
			}
			return s.answer(c, nil)
		}
		now := time.Now()
		asks := r.due(now) && !r.asking && under == nil
		at, changed := r.at, r.changed
		s.d.mu.Unlock()
		if asks {
			if err := s.fly(ctx, c, func(ctx context.Context) error { return s.askForAll(ctx, c, r) }); err != nil {
				return s.answer(c, err)
			}
			continue
		}
		var due <-chan time.Time
		var timer *time.Timer
		if left := at.Sub(now); !at.IsZero() && left > 0 {
			timer = time.NewTimer(left)
			due = timer.C
		}
		select {
		case <-c.change:
		case <-changed:
		case <-under:
		case <-due:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if timer != nil {
			timer.Stop()
		}
		if err != nil {
			return s.answer(c, err)
		}
	}
}

// askForAll asks once for everybody in the room, unless somebody does.
func (s *session) askForAll(ctx context.Context, c *claim, r *room) error {
	if !r.begin() {
		return nil
	}
	err := s.look(ctx, c, r)
	r.done(err)
	return err
}
