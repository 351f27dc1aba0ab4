package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/zk"
)

// enterAttempts bounds how often the lock's node goes just when a claim is to be put below it.
const enterAttempts = 10

// enter makes the claim's node in line and reads who stands with it, in one flight. The lock's node is made where it is missing, as a container, which the
// servers remove some time after its last child has gone.
func (s *session) enter(ctx context.Context, c *claim, missing bool) (look []*zk.Call, err error) {
	for range enterAttempts {
		var parents []*zk.Call
		if missing {
			parents = append(parents, zk.Create(c.top, nil, s.d.parents, s.d.acl))
			if c.dir != c.top {
				parents = append(parents, zk.Create(c.dir, nil, s.d.parents, s.d.acl))
			}
		}
		create, look := s.creation(c), c.look()
		err := s.launch(ctx, c, create, []*zk.Call{create}, slices.Concat(parents, []*zk.Call{create}, look)...)
		if err != nil || create.Code != zk.NoNode {
			return look, cmp.Or(err, create.Err)
		}
		for i, parent := range parents {
			switch {
			case i == 0 && parent.Code == zk.NoNode:
				return nil, s.d.missing()
			case parent.Err != nil && parent.Code != zk.NodeExists && parent.Code != zk.NoNode:
				return nil, parent.Err
			}
		}
		missing = true
	}
	return nil, fmt.Errorf("the node %s goes whenever it is to have a child: %w", c.dir, driver.ErrNotSent)
}

// launch sends a flight in which one call gives c its nodes, or others than it has, and finds out what became of it.
func (s *session) launch(ctx context.Context, c *claim, call *zk.Call, makes []*zk.Call, flight ...*zk.Call) error {
	s.mu.Lock()
	s.disown(c) // that its node goes now is no loss
	s.unwatch(c)
	c.asked, c.makes = call, makes
	s.mu.Unlock()
	if err := s.client.Send(ctx, flight...); err != nil {
		s.mu.Lock()
		c.asked = nil
		s.mu.Unlock()
		return err
	}
	err := zk.Wait(ctx, flight...)
	return cmp.Or(s.resolve(ctx, c), err)
}

// resolve finds out what became of the request that gives c its nodes, if that is not known. After a lost answer the leader's order says it, and the
// nodes are found by the claim's own prefix.
func (s *session) resolve(ctx context.Context, c *claim) error {
	s.mu.Lock()
	call, makes := c.asked, c.makes
	s.mu.Unlock()
	if call == nil {
		return nil
	}
	err := call.Wait(ctx)
	select {
	case <-call.Done():
		err = call.Err // also where ctx has ended at that moment
	default:
		return err
	}
	var nodes []string
	var czxid int64
	switch {
	case err == nil:
		for _, made := range makes {
			nodes, czxid = append(nodes, made.Path), made.Stat.Czxid
		}
	case errors.Is(err, zk.ErrUnanswered):
		sync, look := zk.Sync(c.top), c.look()
		if err := s.client.Do(ctx, append([]*zk.Call{sync}, look...)...); err != nil {
			return err
		}
		line, err := c.line(look)
		if err != nil || sync.Err != nil {
			return cmp.Or(err, sync.Err)
		}
		if at := c.find(line); at >= 0 {
			nodes = line[at].nodes
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.asked = nil; nodes != nil {
		s.stands(c, nodes, czxid)
	}
	return nil
}

// find returns where the claim stands by its prefix, or -1.
func (c *claim) find(line []place) int {
	return slices.IndexFunc(line, func(p place) bool { return strings.HasPrefix(path.Base(p.nodes[0]), c.prefix) })
}

// placeIn returns where the claim stands by its node, or -1. The session's mutex is held.
func (c *claim) placeIn(line []place) int {
	if len(c.nodes) == 0 {
		return -1
	}
	return placeOf(line, c.nodes[0])
}
