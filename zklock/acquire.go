package zklock

import (
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
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.say(c, "acquire", err)
}

// say is what a call answers for a claim. s.mu is held.
func (s *session) say(c *claim, what string, err error) (driver.Grant, error) {
	g, _, final := c.answer()
	switch {
	case s.over():
		return driver.Grant{}, driver.ErrSessionLost
	case final != nil:
		return driver.Grant{}, final
	case err != nil:
		return driver.Grant{}, fmt.Errorf("zklock: %s: %w", what, err)
	}
	if c.state == absent {
		s.forget(c) // a try that was denied
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
	stands, final := c.node != "", c.state >= broken
	s.mu.Unlock()
	if final {
		return nil
	}
	if stands {
		return s.ask(ctx, c)
	}
	if !c.Queue {
		if free, err := s.free(ctx, c); err != nil || !free {
			return err
		}
	}
	children, err := s.enter(ctx, c)
	if err != nil {
		return err
	}
	return s.judge(ctx, c, children)
}

// free reports whether nobody stands in line. A try makes no node before: it would be in the way of who comes, for a moment, and it would come between
// two claims of which one takes the other's place.
func (s *session) free(ctx context.Context, c *claim) (bool, error) {
	names := zk.Children(c.dir, false)
	if err := s.client.Do(ctx, names); err != nil {
		return false, err
	}
	if names.Err != nil && names.Code != zk.NoNode {
		return false, names.Err
	}
	for _, p := range placesOf(names.Children) {
		get := zk.Get(c.dir+"/"+p.node, false)
		if err := s.client.Do(ctx, get); err != nil {
			return false, err
		}
		switch {
		case get.Code == zk.NoNode, get.Err == nil && get.Stat.Owner != 0: // it is there, or was a moment ago
			return false, nil
		case get.Err != nil:
			return false, get.Err
		}
	}
	return true, nil
}

// ask looks for a claim that stands in line.
func (s *session) ask(ctx context.Context, c *claim) error {
	s.mu.Lock()
	get := s.tell(c)
	s.mu.Unlock()
	names := zk.Children(c.dir, false)
	err := s.client.Do(ctx, get, names)
	s.mu.Lock()
	s.told(ctx, c, get)
	final := c.state >= broken
	s.mu.Unlock()
	if err == nil && !final {
		if err = names.Err; err == nil {
			err = s.judge(ctx, c, names.Children)
		}
	}
	return err
}

// enterAttempts bounds how often the lock's node goes just when a claim is to be put below it.
const enterAttempts = 10

// enter makes the claim's node and reads who stands with it, in one flight. The lock's node is made where it is missing, as a container, which the
// servers remove some time after its last child has gone.
func (s *session) enter(ctx context.Context, c *claim) (children []string, err error) {
	data := encode(s.owner, c.Claim)
	var parent []*zk.Call
	for range enterAttempts {
		create, names := zk.Create(c.dir+"/"+c.prefix+"lock-", data, zk.EphemeralSequential), zk.Children(c.dir, false)
		flight := append(slices.Clone(parent), create, names)
		s.mu.Lock()
		c.create = create
		s.mu.Unlock()
		if err := s.client.Send(ctx, flight...); err != nil {
			s.mu.Lock()
			c.create = nil
			s.mu.Unlock()
			return nil, err
		}
		for _, call := range flight {
			_ = call.Wait(ctx) // what has no answer shows below
		}
		if err := s.resolve(ctx, c); err != nil {
			return nil, err
		}
		s.mu.Lock()
		stands := c.node != ""
		s.mu.Unlock()
		switch {
		case stands && names.Wait(ctx) != nil:
			return nil, names.Wait(ctx)
		case stands:
			return names.Children, nil
		case create.Code != zk.NoNode:
			return nil, create.Err
		case len(parent) > 0 && parent[0].Code == zk.NoNode:
			return nil, s.d.missing()
		case len(parent) > 0 && parent[0].Err != nil && parent[0].Code != zk.NodeExists:
			return nil, parent[0].Err
		}
		parent = []*zk.Call{zk.Create(c.dir, nil, zk.Container)}
	}
	return nil, fmt.Errorf("the node %s goes whenever it is to have a child: %w", c.dir, driver.ErrNotSent)
}

// resolve finds out what became of the request to put c into line, if that is not known. After a lost answer the leader's order says it, and the
// node is found by the claim's own prefix.
func (s *session) resolve(ctx context.Context, c *claim) error {
	s.mu.Lock()
	create, known := c.create, c.create == nil || c.node != ""
	s.mu.Unlock()
	if known {
		return nil
	}
	err := create.Wait(ctx)
	select {
	case <-create.Done():
	default:
		return err
	}
	if !errors.Is(err, zk.ErrUnanswered) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if c.create = nil; err == nil {
			s.stands(c, create.Path, create.Stat.Czxid)
		}
		return nil
	}
	sync, names := zk.Sync(c.dir), zk.Children(c.dir, false)
	if err := s.client.Do(ctx, sync, names); err != nil {
		return err
	}
	if sync.Err != nil {
		return sync.Err
	}
	if names.Err != nil && names.Code != zk.NoNode {
		return names.Err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.create = nil
	if node := find(names.Children, c.prefix); node != "" {
		s.stands(c, c.dir+"/"+node, 0)
	}
	return nil
}

// judge finds out whether c is the first, by the children of its lock, or else watches the one ahead. Both its own node and that one are read in the same flight. A node that
// belongs to no session is in nobody's way.
func (s *session) judge(ctx context.Context, c *claim, children []string) error {
	junk := map[string]bool{}
	for {
		line := placesOf(children)
		at := slices.IndexFunc(line, func(p place) bool { return c.dir+"/"+p.node == c.node })
		if at < 0 {
			s.mu.Lock()
			s.ends(c, gone)
			s.mu.Unlock()
			return nil
		}
		for at--; at >= 0 && junk[line[at].node]; at-- {
		}
		var flight []*zk.Call
		s.mu.Lock()
		if !c.own && (c.czxid == 0 || at >= 0 && c.Queue) {
			flight = append(flight, s.tell(c))
		}
		own := len(flight)
		if at >= 0 {
			ahead := c.dir + "/" + line[at].node
			if c.Queue {
				s.watch(c, ahead)
				c.look = false
			}
			flight = append(flight, zk.Get(ahead, c.Queue))
		}
		s.mu.Unlock()
		if len(flight) > 0 {
			err := s.client.Do(ctx, flight...)
			s.mu.Lock()
			if own > 0 {
				s.told(ctx, c, flight[0])
			}
			if err != nil {
				s.again(c)
			}
			final := c.state >= broken
			s.mu.Unlock()
			if err != nil || final {
				return err
			}
		}
		if at < 0 {
			return s.hold(ctx, c)
		}
		switch get := flight[own]; {
		case get.Err == nil && get.Stat.Owner == 0:
			junk[line[at].node] = true
		case get.Err == nil && c.Queue:
			return nil
		case !c.Queue && (get.Err == nil || get.Code == zk.NoNode): // it came between the look and c
			return s.deny(ctx, c)
		case get.Code == zk.NoNode:
			names := zk.Children(c.dir, false)
			if err := s.client.Do(ctx, names); err != nil {
				return err
			}
			if names.Err != nil {
				return names.Err
			}
			children = names.Children
		default:
			return get.Err
		}
	}
}

// hold takes in that c is the first.
func (s *session) hold(ctx context.Context, c *claim) error {
	s.mu.Lock()
	if c.czxid > maxZxid {
		s.mu.Unlock()
		return errors.Join(fmt.Errorf("change %#x of the ensemble is beyond %#x, the last that a token can be made of: move to an ensemble with fresh data, and see that tokens "+
			"at the resources begin anew: %w", c.czxid, int64(maxZxid), driver.ErrUnable), s.deny(ctx, c))
	}
	defer s.mu.Unlock()
	if c.state == waiting {
		c.state = held
		s.unwatch(c)
		if !c.own {
			s.watchHeld()
		}
	}
	return nil
}

// deny takes c out of line again, which cannot be held now and does not wait.
func (s *session) deny(ctx context.Context, c *claim) error {
	out := zk.Delete(c.node, -1)
	if err := s.client.Do(ctx, out); err != nil {
		return err
	}
	if out.Err != nil && out.Code != zk.NoNode {
		return out.Err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own[c.node] == c {
		delete(s.own, c.node)
	}
	c.state, c.create, c.node, c.own = absent, nil, "", false
	return nil
}

// Wait implements driver.Session. Without a connection it waits for one: that is no loss as long as the session lives.
func (s *session) Wait(ctx context.Context, about driver.Claim) (driver.Grant, error) {
	s.mu.Lock()
	c, known := s.claims[about.ID]
	over := s.over()
	s.mu.Unlock()
	switch {
	case over:
		return driver.Grant{}, driver.ErrSessionLost
	case !known:
		return driver.Grant{}, fmt.Errorf("zklock: wait: the claim was not acquired: %w", driver.ErrGone)
	}
	for {
		s.mu.Lock()
		g, certain, err := c.answer()
		look := c.look
		over := s.over()
		s.mu.Unlock()
		switch {
		case over:
			return driver.Grant{}, driver.ErrSessionLost
		case certain:
			return g, err
		case ctx.Err() != nil:
			return driver.Grant{}, ctx.Err()
		case look:
			if err := s.fly(ctx, c, func(ctx context.Context) error { return s.lookAgain(ctx, c) }); err != nil &&
				!errors.Is(err, driver.ErrNotSent) && !errors.Is(err, zk.ErrUnanswered) {
				return driver.Grant{}, fmt.Errorf("zklock: wait: %w", err)
			}
			continue
		}
		select {
		case <-c.wake:
		case <-s.ended:
		case <-ctx.Done():
		}
	}
}

// lookAgain looks who is ahead of a claim that waits.
func (s *session) lookAgain(ctx context.Context, c *claim) error {
	s.mu.Lock()
	waits := c.state == waiting && !c.Leaving && c.node != ""
	c.look = false
	s.mu.Unlock()
	if !waits {
		return nil
	}
	names := zk.Children(c.dir, false)
	err := s.client.Do(ctx, names)
	if err == nil {
		if err = names.Err; err == nil || names.Code == zk.NoNode {
			err = s.judge(ctx, c, names.Children)
		}
	}
	if err != nil {
		s.mu.Lock()
		s.again(c)
		s.mu.Unlock()
	}
	return err
}
