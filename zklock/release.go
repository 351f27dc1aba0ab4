package zklock

import (
	"cmp"
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
		return false, fmt.Errorf("zklock: release %s: %w", c.top, err)
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

// leave takes the claim's nodes away. It was held if it was the first, as far as we know or by the children just before, and nobody has written to it.
func (s *session) leave(ctx context.Context, c *claim) error {
	if err := s.resolve(ctx, c); err != nil {
		return err
	}
	s.mu.Lock()
	nodes, st, bar := c.nodes, c.state, c.bar
	s.mu.Unlock()
	if st == waiting && bar != "" {
		// As long as that node is there c does not hold, and a line, which may be long, is not read for each who gives up.
		step := zk.Multi(append([]*zk.Call{zk.Check(bar, -1)}, deletes(nodes, 0)...)...)
		if err := s.client.Do(ctx, step); err != nil {
			return err
		}
		if step.Err == nil {
			return s.left(c, false)
		}
		// It has gone, or c's own node was marked, or is gone.
	}
	if len(nodes) == 0 {
		look := c.look()
		if err := s.client.Do(ctx, look...); err != nil {
			return err
		}
		line, err := c.line(look)
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
	var look []*zk.Call
	if st <= waiting {
		look = c.look()
	}
	if err := s.client.Do(ctx, slices.Concat(look, flight)...); err != nil {
		return err
	}
	code, err := refusal(out)
	switch {
	case err != nil:
		return err
	case code == 0:
		return s.left(c, st == held || st <= waiting && c.held(look, nodes[0]))
	}
	if err := s.remove(ctx, nodes); err != nil { // it was marked, or is gone
		return err
	}
	return s.left(c, false)
}

// held reports whether by the children that look has read a node's claim was to hold.
func (c *claim) held(look []*zk.Call, node string) bool {
	line, err := c.line(look)
	at := placeOf(line, node)
	return err == nil && at >= 0 && holds(line, at)
}

// refusal is why nodes were not removed: that one has gone or was written to is no error.
func refusal(out []*zk.Call) (code zk.Code, err error) {
	for _, call := range out {
		switch call.Code {
		case zk.NoNode, zk.BadVersion:
			code = call.Code
		case zk.Inconsistent:
		default:
			err = cmp.Or(err, call.Err)
		}
	}
	return code, err
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
		return o.Fly(ctx, &s.mu, false, s.timeout, func(ctx context.Context) error { return s.unchanged(ctx, c, s.certain(ctx, s.requeue(ctx, o, c))) })
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
	nodes, st := o.nodes, o.state
	s.mu.Unlock()
	for version := int32(0); len(nodes) > 0; {
		var before []*zk.Call
		if st == waiting {
			before = o.look()
		}
		after, out, create := c.look(), deletes(nodes, version), s.creation(c)
		step := zk.Multi(append(slices.Clone(out), create)...)
		err := s.launch(ctx, c, create, []*zk.Call{create}, slices.Concat(before, []*zk.Call{step}, after)...)
		made := create.Wait(ctx) == nil
		if made {
			_ = s.left(o, version == 0 && (st == held || st == waiting && o.held(before, nodes[0])))
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

// remove removes nodes, whatever was written to them.
func (s *session) remove(ctx context.Context, nodes []string) error {
	out := deletes(nodes, -1)
	if err := s.client.Do(ctx, out...); err != nil {
		return err
	}
	_, err := refusal(out)
	return err
}

// deletes are the calls that remove nodes, the first of them of that version.
func deletes(nodes []string, version int32) []*zk.Call {
	calls := make([]*zk.Call, len(nodes))
	for i, node := range nodes {
		calls[i] = zk.Delete(node, version)
		version = -1
	}
	return calls
}
