package zklock

import (
	"context"

	"github.com/interlock-go/interlock/internal/zk"
)

// judge decides whether c is held, by a line that was read. If not, it watches what is in the way:
//
//	line ── c is first of it ──> hold, or take leases
//	     ── else watch the claim in the way, and read it at the same time:
//	           it is there ──> wait, or leave if c does not queue
//	           it is gone ──> read the line again
//	           it belongs to no session ──> judge the line without it
//
// The claim's own node is read with that one, unless it is watched. Nobody is in the way by a node
// that belongs to no session.
func (s *session) judge(ctx context.Context, c *claim, reads []*zk.Call) error {
	junk := map[string]bool{} // nodes that belong to no session
	for reads != nil {
		line, err := c.lineWithout(reads, junk)
		if err != nil {
			return err
		}
		at, stands := s.locate(c, line)
		if !stands {
			return nil
		}
		if n := line[at].number; !line[at].lease && (n < 0 || n == lastNumber) {
			return s.exhausted(ctx, c)
		}
		hold, ahead := holds(line, at), inWay(line, at)
		if hold && c.leases != "" && !line[at].lease {
			return s.takeLeases(ctx, c, line[at], reads)
		}
		asked, lost, err := s.observe(ctx, c, line, at, ahead, hold)
		switch {
		case err != nil || lost:
			return err
		case hold:
			return s.hold(ctx, c)
		case len(asked) > 1:
			reads, err = s.judgeParts(ctx, c, asked, junk)
		case asked[0].Err == nil && asked[0].Stat.Owner == 0:
			junk[asked[0].Asked()] = true
		default:
			reads, err = s.judgeAhead(ctx, c, asked[0])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// locate returns the place of c in its line. A claim without one is lost. It reports false for a
// claim that is lost.
func (s *session) locate(c *claim, line []place) (at int, stands bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at = c.place(line); at < 0 {
		s.lose(c, gone)
	}
	return at, at >= 0 && c.state < broken
}

// observe watches what keeps c from being held, unless it may hold, and its own nodes if they are
// not watched and have to be. It returns the requests by which it has read what is in the way. If c
// is lost they mean nothing.
func (s *session) observe(ctx context.Context, c *claim, line []place, at, ahead int, hold bool) (asked []*zk.Call, lost bool, err error) {
	var own []*zk.Call
	s.mu.Lock()
	if !c.watched && (c.czxid == 0 || !hold && c.Queue) {
		own = s.watchOwn(c)
	}
	if !hold {
		if blocker := blockerOf(line, at); blocker >= 0 && c.leases == "" {
			c.blocker = line[blocker].nodes[0]
		}
		var watched []string
		if watched, asked = c.toWatch(line, at, ahead); c.Queue {
			s.watch(c, watched...)
			c.stale = false
		}
	}
	s.mu.Unlock()
	if len(own)+len(asked) == 0 {
		return nil, false, nil
	}
	if lost, err = s.checkOwn(ctx, c, own, asked...); err != nil {
		s.mu.Lock()
		s.outdate(c)
		s.mu.Unlock()
	}
	return asked, lost, err
}

// judgeParts goes on when both parts of a semaphore were read and watched. It returns the line by
// which c is to be judged again, or nil.
func (s *session) judgeParts(ctx context.Context, c *claim, asked []*zk.Call, junk map[string]bool) (again []*zk.Call, err error) {
	line, err := c.lineWithout(asked, junk)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	at := c.place(line)
	s.mu.Unlock()
	switch {
	case at < 0 || holds(line, at):
		return asked, nil
	case !c.Queue:
		return nil, s.deny(ctx, c)
	}
	return nil, nil
}

// judgeAhead goes on when the one claim in the way of c was read and watched. It returns the line
// by which c is to be judged again, or nil.
func (s *session) judgeAhead(ctx context.Context, c *claim, get *zk.Call) (again []*zk.Call, err error) {
	switch {
	case get.Err == nil && c.Queue:
		return nil, nil
	case !c.Queue && (get.Err == nil || get.Code == zk.NoNode): // it came between the look and c
		return nil, s.deny(ctx, c)
	case get.Code == zk.NoNode:
		again = c.readLine()
		return again, s.client.Do(ctx, again...)
	}
	return nil, get.Err
}
