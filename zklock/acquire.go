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
	}
	if c.state == absent && c.asked == nil && (err == nil || errors.Is(err, driver.ErrRefused)) {
		s.forget(c) // a try that was denied
	}
	if err != nil {
		return driver.Grant{}, fmt.Errorf("zklock: %s: %w", what, err)
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

// enterAttempts bounds how often the lock's node goes just when a claim is to be put below it.
const enterAttempts = 10

// enter makes the claim's node in line and reads who stands with it, in one flight. The lock's node is made where it is missing, as a container, which the
// servers remove some time after its last child has gone.
func (s *session) enter(ctx context.Context, c *claim, missing bool) (look []*zk.Call, err error) {
	for range enterAttempts {
		var parents []*zk.Call
		if missing {
			for _, path := range []string{c.top, c.dir, c.leases} {
				if path != "" && (path != c.top || parents == nil) {
					parents = append(parents, zk.Create(path, nil, s.d.parents, s.d.acl))
				}
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
		hold, ahead := holds(line, at), inWay(line, at)
		if hold && c.leases != "" && !line[at].lease {
			return s.takeLeases(ctx, c, line[at], look[0].Stat.Czxid)
		}
		var own, asked []*zk.Call
		s.mu.Lock()
		if !c.own && (c.czxid == 0 || !hold && c.Queue) {
			own = s.tell(c)
		}
		if !hold {
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
	if c.czxid > maxZxid {
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

// deny takes c out of line again, which cannot be held now and does not wait.
func (s *session) deny(ctx context.Context, c *claim) error {
	s.mu.Lock()
	nodes := c.nodes
	s.disown(c) // or else its going is a loss
	s.mu.Unlock()
	if err := s.remove(ctx, nodes); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.state, c.nodes = absent, nil
	return nil
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
		look := c.looks
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
	waits := c.state == waiting && !c.Leaving && c.looks
	c.looks = false
	s.mu.Unlock()
	if !waits {
		return nil
	}
	look := c.look()
	err := s.resolve(ctx, c)
	if err == nil {
		err = s.client.Do(ctx, look...)
	}
	if err == nil {
		err = s.judge(ctx, c, look)
	}
	if err != nil {
		s.mu.Lock()
		s.again(c)
		s.mu.Unlock()
	}
	return err
}
