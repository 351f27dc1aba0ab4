package zklock

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/zk"
)

// Wait implements driver.Session. Without a connection it waits for one: that is no loss as long as
// the session lives.
func (s *session) Wait(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	s.mu.Lock()
	c, known := s.claims[dc.ID]
	over := s.over()
	s.mu.Unlock()
	switch {
	case over:
		return driver.Grant{}, driver.ErrSessionLost
	case !known:
		return driver.Grant{}, fmt.Errorf("zklock: wait: the claim was not acquired: %w", driver.ErrGone)
	}
	for {
		s.mu.Lock()
		g, final, err := c.answer()
		stale, over := c.stale, s.over()
		s.mu.Unlock()
		switch {
		case over:
			return driver.Grant{}, driver.ErrSessionLost
		case final:
			return g, err
		case ctx.Err() != nil:
			return driver.Grant{}, ctx.Err()
		case stale:
			err := s.fly(ctx, c, func(ctx context.Context) error {
				err := s.reread(ctx, c)
				if errors.Is(err, driver.ErrRefused) {
					err = s.unchanged(ctx, c, err)
				}
				return err
			})
			if err != nil && !errors.Is(err, driver.ErrNotSent) && !errors.Is(err, zk.ErrUnanswered) {
				return driver.Grant{}, fmt.Errorf("zklock: wait: %w", err)
			}
			continue
		}
		select {
		case <-c.wake:
		case <-s.ended:
		case <-ctx.Done():
		}
	}
}

// reread reads the line of a claim that waits and is stale, and judges the claim.
func (s *session) reread(ctx context.Context, c *claim) error {
	s.mu.Lock()
	waits := c.state == waiting && !c.Leaving && c.stale
	c.stale = false
	s.mu.Unlock()
	if !waits {
		return nil
	}
	reads := c.readLine()
	err := s.resolve(ctx, c)
	if err == nil {
		err = s.client.Do(ctx, reads...)
	}
	if err == nil {
		err = s.judge(ctx, c, reads)
	}
	if err != nil {
		s.mu.Lock()
		s.outdate(c)
		s.mu.Unlock()
	}
	return err
}
