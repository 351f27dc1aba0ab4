package connlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// Release implements driver.Session.
func (s *Session) Release(ctx context.Context, dc driver.Claim) (bool, error) {
	l, err := s.claim(dc)
	if errors.Is(err, driver.ErrSessionLost) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	l.Depart()
	s.mu.Unlock()
	return s.release(ctx, l)
}

func (s *Session) release(ctx context.Context, l *claim) (bool, error) {
	was, err := l.Departure.Release(ctx, &s.mu, true, s.timeout, func(ctx context.Context) error { return s.sendRelease(ctx, l) })
	if err != nil {
		err = fmt.Errorf("%s: release %q: %w", s.config.Package, l.Name, err)
	}
	return was, err
}

// sendRelease releases the claim in the server. A Wait is cancelled, and then unlocked like
// everything else, since it may have taken the lock before. A connection is closed if its Wait
// cannot be cancelled, or if nobody knows what it has.
func (s *Session) sendRelease(ctx context.Context, l *claim) error {
	s.mu.Lock()
	c := l.conn
	blocked := c != nil && c.blocked
	s.mu.Unlock()
	if !blocked {
		return s.unlock(ctx, l)
	}
	return sessions.Aside(ctx, s.timeout, func(ctx context.Context) error {
		if c.Cancel(ctx) != nil {
			s.closeConn(c)
		}
		if err := c.Await(ctx); err != nil {
			return err
		}
		return s.unlock(ctx, l)
	})
}

// unlock releases a claim that no statement waits for.
func (s *Session) unlock(ctx context.Context, l *claim) error {
	s.mu.Lock()
	c, mine := l.conn, l.state == held
	s.mu.Unlock()
	if c == nil {
		s.released(l, false)
		return nil
	}
	return c.Leave(ctx, l.Lock, func(given bool, err error) {
		if err != nil || mine && !given {
			s.closeConn(c)
		}
		s.released(l, mine && given)
	})
}

// released forgets a claim that the server does not know any more.
func (s *Session) released(l *claim, was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.conn != nil {
		s.detach(l)
	}
	l.Left, l.Was = true, was
	l.move(gone, 0)
	s.claims.Forget(l.ID, l)
}
