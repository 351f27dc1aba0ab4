package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/zk"
)

// judge finds out whether c holds, by the children that look has read, or else watches the one in its way. Both its own node and that one are read in the same flight. A node that
// belongs to no session is in nobody's way.
func (s *session) judge(ctx context.Context, c *claim, look []*zk.Call) error {
	junk := map[string]bool{}
	for {
		line, err := c.line(look)
		if err != nil {
			return err
		}
		line = slices.DeleteFunc(line, func(p place) bool { return junk[p.nodes[0]] })
		s.mu.Lock()
		at, stands := c.placeIn(line), c.state < broken
		if at < 0 {
			s.ends(c, gone)
		}
		s.mu.Unlock()
		if at < 0 || !stands {
			return nil
		}
		if n := line[at].number; !line[at].lease && (n < 0 || n == lastNumber) {
			return s.spent(ctx, c)
		}
		hold, ahead := holds(line, at), inWay(line, at)
		if hold && c.leases != "" && !line[at].lease {
			return s.takeLeases(ctx, c, line[at], look)
		}
		var own, asked []*zk.Call
		s.mu.Lock()
		if !c.own && (c.czxid == 0 || !hold && c.Queue) {
			own = s.tell(c)
		}
		if !hold {
			if bar := barOf(line, at); bar >= 0 && c.leases == "" {
				c.bar = line[bar].nodes[0]
			}
			var watched []string
			if watched, asked = c.watching(line, at, ahead); c.Queue {
				s.watch(c, watched...)
				c.looks = false
			}
		}
		s.mu.Unlock()
		if len(own)+len(asked) > 0 {
			err := s.client.Do(ctx, slices.Concat(own, asked)...)
			s.mu.Lock()
			s.told(ctx, c, own)
			if err != nil {
				s.again(c)
			}
			final := c.state >= broken
			s.mu.Unlock()
			if err != nil || final {
				return err
			}
		}
		if hold {
			return s.hold(ctx, c)
		}
		if len(asked) > 1 { // both parts of a semaphore
			if line, err := c.line(asked); err != nil {
				return err
			} else if at := c.placeIn(line); at < 0 || holds(line, at) {
				look = asked
				continue
			}
			if !c.Queue {
				return s.deny(ctx, c)
			}
			return nil
		}
		switch get := asked[0]; {
		case get.Err == nil && get.Stat.Owner == 0:
			junk[line[ahead].nodes[0]] = true
		case get.Err == nil && c.Queue:
			return nil
		case !c.Queue && (get.Err == nil || get.Code == zk.NoNode): // it came between the look and c
			return s.deny(ctx, c)
		case get.Code == zk.NoNode:
			look = c.look()
			if err := s.client.Do(ctx, look...); err != nil {
				return err
			}
		default:
			return get.Err
		}
	}
}

// hold takes in that c holds.
func (s *session) hold(ctx context.Context, c *claim) error {
	s.mu.Lock()
	if c.state != waiting {
		s.mu.Unlock()
		return nil
	}
	if c.czxid == 0 && c.Kind.Exclusive() {
		own := s.tell(c)
		s.mu.Unlock()
		err := s.client.Do(ctx, own...)
		s.mu.Lock()
		if s.told(ctx, c, own); err != nil || c.state >= broken {
			s.mu.Unlock()
			return err
		}
	}
	if c.Kind.Exclusive() && c.czxid > maxZxid {
		s.mu.Unlock()
		return errors.Join(fmt.Errorf("change %#x of the ensemble is beyond %#x, the last that a token can be made of: move to an ensemble with fresh data, and see that tokens "+
			"at the resources begin anew: %w", c.czxid, int64(maxZxid), driver.ErrUnable), s.deny(ctx, c))
	}
	defer s.mu.Unlock()
	if c.state == waiting { // and has not ended since
		c.state = held
		c.wake.Give()
		s.unwatch(c)
		if !c.own {
			s.watchHeld()
		}
	}
	return nil
}

// spent takes c out of line again since its parent has no number left to tell it from others by. A container goes, and begins anew, when it was empty for a while; what kazoo
// takes for granted stays.
func (s *session) spent(ctx context.Context, c *claim) error {
	who := "by the servers after a minute or by hand"
	if s.d.parents == zk.Persistent {
		who = "by hand"
	}
	return errors.Join(fmt.Errorf("%s has numbered its children up to %d, the last number that there is: it is of use again when nobody stands there and it was removed, %s: %w",
		c.dir, lastNumber, who, driver.ErrUnable), s.deny(ctx, c))
}

// deny takes c out of line again, which cannot be held now and does not wait. It has no node from the
// moment at which they are being removed: whoever looks after the session's claims meanwhile would
// have their going told, and that would be a loss.
func (s *session) deny(ctx context.Context, c *claim) error {
	s.mu.Lock()
	s.disown(c)
	nodes, was := c.nodes, c.state
	c.nodes, c.state = nil, absent
	s.mu.Unlock()
	err := s.remove(ctx, nodes)
	if err != nil {
		s.mu.Lock()
		c.nodes, c.state = nodes, was // they may stand there
		s.mu.Unlock()
	}
	return err
}
