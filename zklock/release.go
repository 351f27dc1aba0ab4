package zklock

import (
	"context"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/zk"
)

// Release implements driver.Session. A claim that is not known here is looked for.
func (s *session) Release(ctx context.Context, dc driver.Claim) (bool, error) {
	if err := checkName(dc.Name); err != nil {
		return false, err
	}
	s.mu.Lock()
	if s.over() {
		s.mu.Unlock()
		return false, driver.ErrSessionLost
	}
	c := s.claims.Leaving(dc.ID, false, func() *claim { return newClaim(s.ensemble, dc) })
	s.mu.Unlock()
	was, err := s.release(ctx, c)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.over() {
			return false, driver.ErrSessionLost
		}
		return false, fmt.Errorf("zklock: release %s: %w", c.top, err)
	}
	return was, nil
}

// release takes the claim out of line, once.
func (s *session) release(ctx context.Context, c *claim) (bool, error) {
	if ctx.Err() != nil {
		return false, fmt.Errorf("%w: %w", driver.ErrNotSent, context.Cause(ctx))
	}
	was, err := c.Release(ctx, &s.mu, false, s.patience, func(ctx context.Context) error { return s.certain(ctx, s.leave(ctx, c)) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Left {
		s.forget(c)
	}
	return was, err
}

// leave removes the claim's nodes. It was held if that is known here or by the line just before,
// and nobody has written to its node.
func (s *session) leave(ctx context.Context, c *claim) error {
	if err := s.resolve(ctx, c); err != nil {
		return err
	}
	s.mu.Lock()
	nodes, st, blocker := c.nodes, c.state, c.blocker
	s.mu.Unlock()
	if st == waiting && blocker != "" {
		// As long as that node is there c is not held, and the line, which may be long, is not read
		// for each claim that is given up.
		step := zk.Multi(append([]*zk.Call{zk.Check(blocker, -1)}, deletes(nodes, 0)...)...)
		if err := s.client.Do(ctx, step); err != nil {
			return err
		}
		if step.Err == nil {
			return s.left(c, false)
		}
		// That node is gone, or c's own was marked, or is gone.
	}
	if len(nodes) == 0 {
		reads := c.readLine()
		if err := s.client.Do(ctx, reads...); err != nil {
			return err
		}
		line, err := c.line(reads)
		if err != nil {
			return err
		}
		at := c.find(line)
		if at < 0 {
			return s.left(c, false)
		}
		nodes = line[at].nodes
	}
	out := deletes(nodes, 0)
	flight := out
	if len(out) > 1 {
		flight = []*zk.Call{zk.Multi(out...)}
	}
	var reads []*zk.Call
	if st <= waiting {
		reads = c.readLine()
	}
	if err := s.client.Do(ctx, slices.Concat(reads, flight)...); err != nil {
		return err
	}
	code, err := refusal(out)
	switch {
	case err != nil:
		return err
	case code == 0:
		return s.left(c, st == held || st <= waiting && c.holds(reads, nodes[0]))
	}
	if err := s.remove(ctx, nodes); err != nil { // it was marked, or is gone
		return err
	}
	return s.left(c, false)
}

// left records that c has left the line, and whether it was held until then.
func (s *session) left(c *claim, was bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Left, c.Was = true, was
	return nil
}

// Requeue implements driver.Requeuer: one transaction removes the old node and makes the next one.
func (s *session) Requeue(ctx context.Context, old, next driver.Claim) (g driver.Grant, was bool, err error) {
	c, err := s.claim(next)
	if err != nil {
		return g, false, err
	}
	s.mu.Lock()
	o := s.claims.Leaving(old.ID, false, func() *claim { return newClaim(s.ensemble, old) })
	s.mu.Unlock()
	err = s.fly(ctx, c, func(ctx context.Context) error {
		return o.Fly(ctx, &s.mu, false, s.patience, func(ctx context.Context) error { return s.unchanged(ctx, c, s.certain(ctx, s.requeue(ctx, o, c))) })
	})
	s.mu.Lock()
	left, was := o.Left, o.Was
	if left {
		s.forget(o)
	}
	s.mu.Unlock()
	g, err = s.answer(c, "requeue", err)
	return g, err == nil && was, err
}

// requeue takes o out of line and puts c into it. If o was marked or is gone, that is two steps.
func (s *session) requeue(ctx context.Context, o, c *claim) error {
	if err := s.resolve(ctx, o); err != nil {
		return err
	}
	s.mu.Lock()
	nodes, st := o.nodes, o.state
	s.mu.Unlock()
	for version := int32(0); len(nodes) > 0; {
		var before []*zk.Call
		if st == waiting {
			before = o.readLine()
		}
		after, out, create := c.readLine(), deletes(nodes, version), s.creation(c)
		step := zk.Multi(append(slices.Clone(out), create)...)
		err := s.launch(ctx, c, create, []*zk.Call{create}, slices.Concat(before, []*zk.Call{step}, after)...)
		made := create.Wait(ctx) == nil
		if made {
			_ = s.left(o, version == 0 && (st == held || st == waiting && o.holds(before, nodes[0])))
		}
		if err != nil {
			return err
		}
		if made {
			return s.judge(ctx, c, after)
		}
		code, _ := refusal(out)
		if code == 0 && create.Code != zk.NoNode {
			return fmt.Errorf("leave and stand in line again: %w", create.Err)
		}
		if code != zk.BadVersion {
			break
		}
		version = -1
	}
	if len(nodes) > 0 {
		if err := s.leave(ctx, o); err != nil {
			return err
		}
	} else {
		_ = s.left(o, false)
	}
	return s.acquire(ctx, c)
}
