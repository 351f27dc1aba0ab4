package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/zk"
)

// Acquire implements driver.Session.
func (s *session) Acquire(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	c, err := s.claim(dc)
	if err != nil {
		return driver.Grant{}, err
	}
	err = s.fly(ctx, c, func(ctx context.Context) error {
		err := s.acquire(ctx, c)
		for errors.Is(err, zk.ErrUnanswered) && ctx.Err() == nil {
			err = s.acquire(ctx, c) // over another connection, which tells what became of it
		}
		return s.unchanged(ctx, c, err)
	})
	return s.answer(c, "acquire", err)
}

// unchanged returns err. If it says that nothing was changed, the claim is not in line, since
// nobody would release it: it is taken out, or the error says no more than that it failed. A line
// may be refused to a claim that is in it, as when the claim ahead may not be read.
func (s *session) unchanged(ctx context.Context, c *claim, err error) error {
	if !errors.Is(err, driver.ErrRefused) && !errors.Is(err, driver.ErrNotSent) {
		return err
	}
	s.mu.Lock()
	stands, known := c.state == waiting || c.asked != nil, c.asked == nil
	s.mu.Unlock()
	if !stands || known && errors.Is(err, driver.ErrRefused) && s.deny(ctx, c) == nil {
		return err
	}
	return fmt.Errorf("the claim may stand in line: %v", err) //nolint:errorlint // what it was no more
}

// answer returns what a call answers for a claim. A claim that is certainly not in line is
// forgotten.
func (s *session) answer(c *claim, call string, err error) (driver.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, _, lost := c.answer()
	switch {
	case s.over():
		return driver.Grant{}, driver.ErrSessionLost
	case lost != nil:
		return driver.Grant{}, lost
	}
	if c.state == absent && c.asked == nil && (err == nil || errors.Is(err, driver.ErrRefused)) {
		s.forget(c) // a try that was denied
	}
	if err != nil {
		return driver.Grant{}, fmt.Errorf("zklock: %s %s: %w", call, c.top, err)
	}
	return g, nil
}

// acquire puts c in line, or finds it there, and judges it.
func (s *session) acquire(ctx context.Context, c *claim) error {
	if err := s.resolve(ctx, c); err != nil {
		return err
	}
	s.mu.Lock()
	leaving, stands, lost := c.Leaving, len(c.nodes) > 0, c.state >= broken
	s.mu.Unlock()
	switch {
	case leaving:
		return errors.New("the claim is being released")
	case lost:
		return nil
	case stands:
		return s.ask(ctx, c)
	}
	missing := false // whether it is to be made first
	if !c.Queue {
		reads, err := s.consistent(ctx, c)
		if err != nil {
			return err
		}
		if free, err := s.free(ctx, c, reads); err != nil || !free {
			return err
		}
		missing = reads[0].Code == zk.NoNode
	}
	reads, err := s.enter(ctx, c, missing)
	if err != nil {
		return err
	}
	if err := s.apart(ctx, c, reads); err != nil {
		return cmp.Or(s.deny(ctx, c), err)
	}
	return s.judge(ctx, c, reads)
}

// ask reads the line of a claim that is in it, and judges the claim.
func (s *session) ask(ctx context.Context, c *claim) error {
	s.mu.Lock()
	own := s.watchOwn(c)
	s.mu.Unlock()
	reads := c.readLine()
	if lost, err := s.checkOwn(ctx, c, own, reads...); lost || err != nil {
		return err
	}
	return s.judge(ctx, c, reads)
}
