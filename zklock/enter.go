package zklock

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/zk"
)

// enter makes the claim's node in line and reads the line, in one flight. The lock's node is made
// if it is missing, as a container, which the servers remove some time after its last child is
// gone.
func (s *session) enter(ctx context.Context, c *claim, missing bool) (reads []*zk.Call, err error) {
	for range attempts {
		var parents []*zk.Call
		if missing {
			parents = append(parents, zk.Create(c.top, nil, s.parents, s.acl))
			if c.dir != c.top {
				parents = append(parents, zk.Create(c.dir, nil, s.parents, s.acl))
			}
		}
		create, reads := s.creation(c), c.readLine()
		err := s.launch(ctx, c, create, []*zk.Call{create}, slices.Concat(parents, []*zk.Call{create}, reads)...)
		if err != nil || create.Code != zk.NoNode {
			return reads, cmp.Or(err, create.Err)
		}
		for i, parent := range parents {
			switch {
			case i == 0 && parent.Code == zk.NoNode:
				return nil, s.missing()
			case parent.Err != nil && parent.Code != zk.NodeExists && parent.Code != zk.NoNode:
				return nil, parent.Err
			}
		}
		missing = true
	}
	return nil, fmt.Errorf("the node %s goes whenever it is to have a child: %w", c.dir, driver.ErrNotSent)
}

// free reports whether c would be held if it entered now. A claim that does not queue makes no node
// before that is known: the node would be in the way of others, for a moment, and it would come
// between two claims of which one takes the other's place.
func (s *session) free(ctx context.Context, c *claim, reads []*zk.Call) (bool, error) {
	line, err := c.line(reads)
	if err == nil {
		err = s.apart(ctx, c, reads)
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
		case get.Code == zk.NoNode, get.Err == nil && get.Stat.Owner != 0:
			// It is there, or was a moment ago.
			return false, nil
		case get.Err != nil:
			return false, get.Err
		}
		line = slices.Delete(line, at, at+1)
	}
}

// apart returns an error if the line that was read has a claim beside which c cannot be: permits
// and locks share no name.
func (s *session) apart(ctx context.Context, c *claim, reads []*zk.Call) error {
	line, err := c.line(reads)
	if err != nil {
		return err
	}
	if c.leases != "" {
		for _, p := range line {
			if !p.foreign && p.kind != c.Kind {
				return c.misfit(p)
			}
		}
		for _, p := range placesOf(c.top, reads[2].Children) {
			get := zk.Get(p.nodes[0], false)
			if err := s.client.Do(ctx, get); err != nil {
				return err
			}
			if get.Err == nil && get.Stat.Owner != 0 {
				return c.misfit(p)
			}
		}
		return nil
	}
	if !slices.Contains(reads[0].Children, waitingPart[1:]) && !slices.Contains(reads[0].Children, leasesPart[1:]) {
		return nil
	}
	parts := []*zk.Call{zk.Children(c.top+waitingPart, false), zk.Children(c.top+leasesPart, false)}
	if err := s.client.Do(ctx, parts...); err != nil {
		return err
	}
	for _, part := range parts {
		if len(part.Children) > 0 {
			return fmt.Errorf("%s is in use as a semaphore, so it takes no %s claim: use another name: %w", c.top, c.Kind, driver.ErrName)
		}
	}
	return nil
}

func (c *claim) misfit(p place) error {
	return fmt.Errorf("%s has a %s claim, so it takes no %s claim: use another name: %w", c.top, p.kind, c.Kind, driver.ErrName)
}
