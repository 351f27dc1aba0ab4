package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/zk"
)

// Acquire implements driver.Session.
func (s *session) Acquire(ctx context.Context, about driver.Claim) (driver.Grant, error) {
	c, err := s.find(about)
	if err != nil {
		return driver.Grant{}, err
	}
	err = s.fly(ctx, c, func(ctx context.Context) error {
		err := s.acquire(ctx, c)
		for errors.Is(err, zk.ErrUnanswered) && ctx.Err() == nil {
			err = s.acquire(ctx, c) // over another connection, which says what became of it
		}
		return s.unchanged(ctx, c, err)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.say(c, "acquire", err)
}

// unchanged sees to it that an error which says that nothing was changed is that of a claim that does not stand in line: nobody releases it. The line may be refused to
// who stands in it, as where the one ahead may not be read.
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

// say is what a call answers for a claim. s.mu is held.
func (s *session) say(c *claim, what string, err error) (driver.Grant, error) {
	g, _, final := c.answer()
	switch {
	case s.over():
		return driver.Grant{}, driver.ErrSessionLost
	case final != nil:
		return driver.Grant{}, final
	}
	if c.state == absent && c.asked == nil && (err == nil || errors.Is(err, driver.ErrRefused)) {
		s.forget(c) // a try that was denied
	}
	if err != nil {
		return driver.Grant{}, fmt.Errorf("zklock: %s %s: %w", what, c.top, err)
	}
	return g, nil
}

// acquire puts c into line, or finds it there, and looks who is ahead.
func (s *session) acquire(ctx context.Context, c *claim) error {
	if err := s.resolve(ctx, c); err != nil {
		return err
	}
	s.mu.Lock()
	if c.Leaving {
		s.mu.Unlock()
		return errors.New("the claim is being released")
	}
	stands, final := len(c.nodes) > 0, c.state >= broken
	s.mu.Unlock()
	if final {
		return nil
	}
	if stands {
		return s.ask(ctx, c)
	}
	missing := false // whether it is to be made first
	if !c.Queue {
		look, err := s.consistent(ctx, c)
		if err != nil {
			return err
		}
		if free, err := s.free(ctx, c, look); err != nil || !free {
			return err
		}
		missing = look[0].Code == zk.NoNode
	}
	look, err := s.enter(ctx, c, missing)
	if err != nil {
		return err
	}
	if err := s.apart(ctx, c, look); err != nil {
		return cmp.Or(s.deny(ctx, c), err)
	}
	return s.judge(ctx, c, look)
}

// free reports whether c would hold. A try makes no node before: it would be in the way of who comes, for a moment, and it would come between
// two claims of which one takes the other's place.
func (s *session) free(ctx context.Context, c *claim, look []*zk.Call) (bool, error) {
	line, err := c.line(look)
	if err == nil {
		err = s.apart(ctx, c, look)
	}
	if err != nil {
		return false, err
	}
	line = append(line, place{kind: c.Kind, weight: c.Weight, limit: c.Limit})
	for {
		at := len(line) - 1
		if holds(line, at) {
			return true, nil
		}
		at = inWay(line, at)
		if c.leases != "" {
			return false, nil
		}
		get := zk.Get(line[at].nodes[0], false)
		if err := s.client.Do(ctx, get); err != nil {
			return false, err
		}
		switch {
		case get.Code == zk.NoNode, get.Err == nil && get.Stat.Owner != 0: // it is there, or was a moment ago
			return false, nil
		case get.Err != nil:
			return false, get.Err
		}
		line = slices.Delete(line, at, at+1)
	}
}

// ask looks for a claim that stands in line.
func (s *session) ask(ctx context.Context, c *claim) error {
	s.mu.Lock()
	own := s.tell(c)
	s.mu.Unlock()
	look := c.look()
	err := s.client.Do(ctx, slices.Concat(own, look)...)
	s.mu.Lock()
	s.told(ctx, c, own)
	final := c.state >= broken
	s.mu.Unlock()
	if err == nil && !final {
		err = s.judge(ctx, c, look)
	}
	return err
}
