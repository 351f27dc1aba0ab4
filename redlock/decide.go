package redlock

import (
	"strconv"
	"time"

	"github.com/interlock-go/interlock/redisconn"
)

// step decides what the masters' answers so far mean for a claim, and whether its Acquire is over.
// s.mu is held.
func (s *session) step(c *claim) {
	s.decide(c)
	c.acquiring.check()
}

// decide counts. With a majority on which one counter holds it is held. Where the counters differ,
// the largest is its token, and it is written back first: until a majority holds it under the
// claim's ID the claim is not held, and does not step back either. s.mu is held.
func (s *session) decide(c *claim) {
	if c.leaving || c.state >= held {
		return
	}
	if c.has() < s.d.quorum {
		c.raising = false
		for i := range c.nodes { // who is asked may not have known yet that it has the master, or still be stepping back
			if c.nodes[i].asked {
				s.yield(c, s.d.nodes[i])
			}
		}
		return
	}
	// The largest anew each time, also while raising: a master that was won meanwhile may have
	// given a larger one to somebody in between, and counts only with the claim's own above it.
	c.token = 0
	for i := range c.nodes {
		if c.nodes[i].has {
			c.token = max(c.token, c.nodes[i].counter)
		}
	}
	if c.good(c.need, s.Valid()) >= s.d.quorum {
		c.state, c.raising, c.stands = held, false, ""
		c.kept = c.need
		s.d.grants.Add(1)
		s.d.saw(c.Name, c.token)
		c.change.Give()
		return
	}
	s.raise(c)
}

// agreement is how long a claim with a majority that disagrees waits for masters that it does not
// have yet.
const agreement = 2 * time.Millisecond

// raise writes the token of a claim back to those of its masters that do not hold it yet, and
// renews it there. A handoff reaches the masters one by one within a moment. A claim that had one
// of them before then sees two answer the new counter, beside the old one, just before the others
// answer the new one, too. So it waits a moment for these, if they can make a majority that agrees;
// nearly all raises under contention are saved by that.
func (s *session) raise(c *claim) {
	now := time.Now()
	if !c.raising {
		c.raising, c.wrote, c.agreeBy = true, false, now.Add(agreement)
		if s.mayAgree(c, now) {
			time.AfterFunc(agreement, func() { s.agreementOver(c) })
		}
	}
	if s.mayAgree(c, now) {
		return
	}
	c.agreeBy = time.Time{}
	for i := range c.nodes {
		if ns := &c.nodes[i]; ns.has && !ns.raising && !ns.good(c.token, c.need, s.Valid()) {
			if ns.counter < c.token && !c.wrote {
				c.wrote = true
				s.d.raises.Add(1)
			}
			s.confirm(c, s.d.nodes[i], nil)
		}
	}
}

// mayAgree reports whether a majority may soon hold the claim's token by itself: masters that do,
// and those whose answer is on its way or whose line the claim stands in.
func (s *session) mayAgree(c *claim, now time.Time) bool {
	if !now.Before(c.agreeBy) {
		return false
	}
	n := 0
	for i := range c.nodes {
		ns := &c.nodes[i]
		coming := !ns.has && !ns.yielding && (ns.pending > 0 || c.state == waiting) && !s.d.nodes[i].unresponsive()
		if coming || ns.good(c.token, c.need, s.Valid()) {
			n++
		}
	}
	return n >= s.d.quorum
}

// agreementOver decides for a claim whose masters had time to agree by themselves. They may have,
// or the claim may be gone: then nothing is left to decide.
func (s *session) agreementOver(c *claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step(c)
	c.change.Give()
}

// confirm writes the token of a claim to one master, and renews the claim there.
func (s *session) confirm(c *claim, n *node, f *inflight) {
	c.nodes[n.i].raising = true
	since := time.Now()
	if f != nil {
		since = f.since
		f.give(n)
	}
	n.give(order{
		call: redisconn.Call{Script: raiseScript, Keys: c.keys.grants(), Args: []string{
			layout + c.ID, strconv.FormatInt(c.token, 10), s.ttlMS, n.member.Vote(),
		}},
		since: since, until: since.Add(s.timeout),
		done: func(n *node, o *order, v any, err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			ns := &c.nodes[n.i]
			ns.raising = false
			counter, ok := v.(int64)
			switch {
			case err != nil || !ok:
				ns.failed(err)
				ns.doubt = ns.doubt || err == nil
			case counter > 0:
				ns.given(counter, o.since)
			case counter < 0:
				c.end(broken)
			default:
				ns.lacks(ns.counter)
			}
			if f != nil {
				f.answer(n, err)
			}
			s.raised(c)
			s.step(c)
			c.change.Give() // as in yield
			f.check()
		},
	})
}

// raised looks, when the last master has answered to a raise, whether that has failed: the claim
// then asks for its state again, and may be asked to step back.
func (s *session) raised(c *claim) {
	if !c.raising || c.state >= held {
		return
	}
	for i := range c.nodes {
		if c.nodes[i].raising {
			return
		}
	}
	if c.good(c.need, s.Valid()) >= s.d.quorum {
		return
	}
	c.raising = false
	now := time.Now()
	for i := range c.nodes {
		c.nodes[i].has = c.nodes[i].has && c.nodes[i].good(c.token, c.need, s.Valid())
		c.nodes[i].recheck.Retry(now)
	}
	c.change.Give()
}

// settled reports whether nothing is under way that could still decide for the claim.
func (c *claim) idle() bool {
	if c.raising && time.Now().Before(c.agreeBy) {
		return false
	}
	for i := range c.nodes {
		if c.nodes[i].raising || c.nodes[i].yielding {
			return false
		}
	}
	return true
}

// yield steps back from a master that a claim with an older ticket waits for, at the own place in
// line. The claim counts the master as lost from now on.
func (s *session) yield(c *claim, n *node) {
	ns := &c.nodes[n.i]
	decided := c.raising || c.state >= held
	if c.leaving || decided || !ns.has || ns.yielding || !c.Queue {
		return
	}
	back := ns.counter
	ns.has, ns.void, ns.yielding, ns.asked = false, back, true, false
	s.d.yields.Add(1)
	now := time.Now()
	proposal := strconv.FormatInt(s.d.propose(c.Name, back), 10)
	n.give(order{
		call: s.lineCall(nil, c, n, proposal, strconv.FormatInt(back, 10)), since: now, until: now.Add(s.timeout), vote: true,
		done: func(n *node, o *order, v any, err error) {
			r, err := parseLineReply(v, err)
			s.mu.Lock()
			defer s.mu.Unlock()
			ns := &c.nodes[n.i]
			ns.yielding = false
			ns.doubt = ns.doubt || o.resent
			if err == nil && r.state == lineHas && r.counter == back {
				ns.void = back - 1 // nobody older waits any more, so it was never given back
			}
			s.onAnswer(c, n, o, r, err)
			c.change.Give() // it may be settled now, which its Wait looks at masters for
		},
	})
}
