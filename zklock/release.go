package zklock

import (
	"context"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/zk"
)

// Release implements driver.Session. A claim of which nothing is known here is looked for.
func (s *session) Release(ctx context.Context, about driver.Claim) (bool, error) {
	if err := checkName(about.Name); err != nil {
		return false, err
	}
	s.mu.Lock()
	if s.over() {
		s.mu.Unlock()
		return false, driver.ErrSessionLost
	}
	c := s.claims.Leaving(about.ID, false, func() *claim { return s.newClaim(about) })
	s.mu.Unlock()
	held, err := s.release(ctx, c)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.over() {
			return false, driver.ErrSessionLost
		}
		return false, fmt.Errorf("zklock: release: %w", err)
	}
	return held, nil
}

func (s *session) release(ctx context.Context, c *claim) (bool, error) {
	if ctx.Err() != nil {
		return false, fmt.Errorf("%w: %w", driver.ErrNotSent, context.Cause(ctx))
	}
	held, err := c.Release(ctx, &s.mu, false, s.timeout, func(ctx context.Context) error { return s.certain(ctx, s.leave(ctx, c)) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Left {
		s.forget(c)
	}
	return held, err
}

// leave takes the claim's node away. It was held if it was the first, as far as we know or by the children just before, and nobody has written to it.
func (s *session) leave(ctx context.Context, c *claim) error {
	if err := s.resolve(ctx, c); err != nil {
		return err
	}
	s.mu.Lock()
	node, st := c.node, c.state
	s.mu.Unlock()
	names := zk.Children(c.dir, false)
	if node == "" {
		if err := s.client.Do(ctx, names); err != nil {
			return err
		}
		child := find(names.Children, c.prefix)
		switch {
		case names.Err != nil && names.Code != zk.NoNode:
			return names.Err
		case child == "":
			return s.left(c, false)
		}
		node = c.dir + "/" + child
	}
	out := zk.Delete(node, 0)
	flight := []*zk.Call{out}
	if st == absent || st == waiting {
		flight = []*zk.Call{names, out}
		if st == absent {
			names = zk.Children(c.dir, false)
			flight[0] = names
		}
	}
	if err := s.client.Do(ctx, flight...); err != nil {
		return err
	}
	first := st == held
	if st <= waiting {
		line := placesOf(names.Children)
		first = len(line) > 0 && c.dir+"/"+line[0].node == node
	}
	switch out.Code {
	case 0:
		return s.left(c, first)
	case zk.NoNode:
		return s.left(c, false)
	case zk.BadVersion: // it was marked
		out = zk.Delete(node, -1)
		if err := s.client.Do(ctx, out); err != nil {
			return err
		}
		if out.Err == nil || out.Code == zk.NoNode {
			return s.left(c, false)
		}
	}
	return out.Err
}

// left takes in that c stands in line no more.
func (s *session) left(c *claim, was bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Left, c.Was = true, was
	return nil
}

// Requeue implements driver.Requeuer: the old node goes and the next one comes by one transaction.
func (s *session) Requeue(ctx context.Context, old, next driver.Claim) (g driver.Grant, was bool, err error) {
	c, err := s.find(next)
	if err != nil {
		return g, false, err
	}
	s.mu.Lock()
	o := s.claims.Leaving(old.ID, false, func() *claim { return s.newClaim(old) })
	s.mu.Unlock()
	err = s.fly(ctx, c, func(ctx context.Context) error {
		return o.Fly(ctx, &s.mu, false, s.timeout, func(ctx context.Context) error { return s.certain(ctx, s.requeue(ctx, o, c)) })
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.Left {
		s.forget(o)
	}
	g, err = s.say(c, "requeue", err)
	return g, err == nil && o.Was, err
}

func (s *session) requeue(ctx context.Context, o, c *claim) error {
	if err := s.resolve(ctx, o); err != nil {
		return err
	}
	s.mu.Lock()
	node, st := o.node, o.state
	s.mu.Unlock()
	version, was := int32(0), st == held
	for node != "" {
		before, after := zk.Children(c.dir, false), zk.Children(c.dir, false)
		out, create := zk.Delete(node, version), zk.Create(c.dir+"/"+c.prefix+"lock-", encode(s.owner, c.Claim), zk.EphemeralSequential)
		flight := []*zk.Call{zk.Multi(out, create), after}
		if st == waiting {
			flight = slices.Insert(flight, 0, before)
		}
		s.mu.Lock()
		c.create = create
		s.mu.Unlock()
		if err := s.client.Send(ctx, flight...); err != nil {
			s.mu.Lock()
			c.create = nil
			s.mu.Unlock()
			return err
		}
		for _, call := range flight {
			_ = call.Wait(ctx) // what has no answer shows below
		}
		err := create.Wait(ctx)
		select {
		case <-create.Done():
		default:
			return err
		}
		if err == nil { // both, since it is one step
			if st == waiting {
				line := placesOf(before.Children)
				was = len(line) > 0 && c.dir+"/"+line[0].node == node
			}
			_ = s.left(o, was && version == 0)
			if err := s.resolve(ctx, c); err != nil {
				return err
			}
			if err := after.Wait(ctx); err != nil {
				return err
			}
			return s.judge(ctx, c, after.Children)
		}
		if out.Code != zk.NoNode && out.Code != zk.BadVersion {
			return fmt.Errorf("leave and stand in line again: %w", err)
		}
		s.mu.Lock()
		c.create = nil
		s.mu.Unlock()
		if version = -1; out.Code == zk.NoNode {
			break
		}
	}
	_ = s.left(o, false)
	return s.acquire(ctx, c)
}
