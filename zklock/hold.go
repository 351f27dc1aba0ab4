package zklock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/zk"
)

// hold moves c, which may hold, from waiting to held. The token of an exclusive claim is made of
// the change that made its node, which is read first if it is not known.
func (s *session) hold(ctx context.Context, c *claim) error {
	var own []*zk.Call
	s.mu.Lock()
	if c.state == waiting && c.czxid == 0 && c.Kind.Exclusive() {
		own = s.watchOwn(c)
	}
	s.mu.Unlock()
	if len(own) > 0 {
		if lost, err := s.checkOwn(ctx, c, own); lost || err != nil {
			return err
		}
	}
	change := s.held(c)
	if change == 0 {
		return nil
	}
	return errors.Join(fmt.Errorf("change %#x of the ensemble is beyond %#x, the last that a token can be made of: move to an ensemble with fresh data, and see that tokens "+
		"at the resources begin anew: %w", change, int64(maxZxid), driver.ErrUnable), s.deny(ctx, c))
}

// held records that c is held, if it waits. If no token can be made of the change that made its
// node, it returns that instead, and 0 otherwise.
func (s *session) held(c *claim) (change int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case c.state != waiting: // it has ended since
		return 0
	case c.Kind.Exclusive() && c.czxid > maxZxid:
		return c.czxid
	}
	c.state = held
	c.wake.Give()
	s.unwatch(c)
	if !c.watched {
		s.watchHeld()
	}
	return 0
}

// takeLeases has c leave the line and hold, by one transaction. No claim can come ahead of it any
// more, so there still is room. The part for claims that are held is made only now if it is
// missing, since the servers remove no container that never had a child.
func (s *session) takeLeases(ctx context.Context, c *claim, p place, reads []*zk.Call) error {
	name := fmt.Sprintf("%s/%s%s%x.%d-lease-", c.leases, c.prefix, strings.TrimSuffix(c.tag, "lock-"), reads[0].Stat.Czxid, p.number)
	missing := reads[1].Code == zk.NoNode
	for range attempts {
		out, data := zk.Delete(p.nodes[0], 0), encode(s.owner, c.Claim)
		calls := []*zk.Call{out}
		for range leaseCount(c.Claim) {
			calls = append(calls, zk.Create(name, data, zk.EphemeralSequential, s.acl))
			data = nil
		}
		take, part := zk.Multi(calls...), zk.Create(c.leases, nil, zk.Container, s.acl)
		flight := []*zk.Call{part, take}
		if !missing {
			flight = flight[1:]
		}
		if err := s.launch(ctx, c, take, calls[1:], flight...); err != nil {
			return err
		}
		switch {
		case take.Err == nil:
			return s.hold(ctx, c)
		case out.Code == zk.NoNode, out.Code == zk.BadVersion:
			how := gone
			if out.Code == zk.BadVersion {
				how = broken
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.lose(c, how)
			return nil
		case missing && part.Err != nil && part.Code != zk.NodeExists:
			return part.Err
		case take.Code != zk.NoNode:
			return take.Err
		}
		missing = true
	}
	return fmt.Errorf("the node %s goes whenever it is to have a child: %w", c.leases, driver.ErrNotSent)
}

// deny takes c out of line again, which cannot be held now and does not wait. It has no nodes while
// they are being removed: check would watch them, and their removal would be a loss.
func (s *session) deny(ctx context.Context, c *claim) error {
	s.mu.Lock()
	s.unwatchOwn(c)
	nodes, was := c.nodes, c.state
	c.nodes, c.state = nil, absent
	s.mu.Unlock()
	err := s.remove(ctx, nodes)
	if err != nil {
		s.mu.Lock()
		c.nodes, c.state = nodes, was // they may be there still
		s.mu.Unlock()
	}
	return err
}

// exhausted takes c out of line again since its parent has no number left. A container is removed
// when it was empty for a while, and begins anew; the parents that kazoo expects stay.
func (s *session) exhausted(ctx context.Context, c *claim) error {
	who := "by the servers after a minute or by hand"
	if s.parents == zk.Persistent {
		who = "by hand"
	}
	return errors.Join(fmt.Errorf("%s has numbered its children up to %d, the last number that there is: it is of use again when nobody stands there and it was removed, %s: %w",
		c.dir, lastNumber, who, driver.ErrUnable), s.deny(ctx, c))
}
