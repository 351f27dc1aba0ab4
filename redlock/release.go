package redlock

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

// Release implements driver.Session. One script on every master frees it, or hands it on if others wait; all are offered
// the same counter for whoever comes next.
func (s *session) Release(ctx context.Context, dc driver.Claim) (bool, error) {
	c, err := s.releasing(dc)
	if err != nil {
		return false, err
	}
	return s.departed(ctx, c, s.leave(c))
}

// releasing returns the claim with no request but its Release from now on.
func (s *session) releasing(dc driver.Claim) (*claim, error) {
	if err := check(dc); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claims.Leaving(dc.ID, s.closed, func() *claim { return s.newClaim(dc) }), nil
}

// leave has every master let the claim go, also those that seem not to have it: the answer that said so may be older than
// a request under way.
func (s *session) leave(c *claim) *inflight {
	f := newInflight(time.Now())
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.left {
		return f
	}
	f.propose(s.d, c.Name, c.token)
	for _, n := range s.d.nodes {
		s.depart(c, n, f)
	}
	return f
}

// depart has one master let the claim go. One that does not answer is asked again until it does. s.mu is held.
func (s *session) depart(c *claim, n *node, f *inflight) {
	f.give(n)
	n.give(order{
		call: s.lineCall(c, nil, n, f.proposal, ""), since: f.since, until: time.Now().Add(s.timeout),
		done: func(n *node, _ *order, v any, err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			f.answer(n, err)
			s.out(c, n, v, err)
			f.check()
		},
	})
}

// out takes in a master's answer to a claim that leaves, alone or along with another's entry. s.mu is held.
func (s *session) out(c *claim, n *node, v any, err error) {
	sp := &c.spots[n.i]
	if err == nil {
		r, alone := lineReply{}, v == int64(1)
		if !alone {
			r, _ = parseLineReply(v, nil)
			s.d.met(r.last)
		}
		if alone || r.left == 1 {
			sp.left = 1
		} else if sp.left == 0 {
			sp.left = -1
		}
		c.others = c.others || !alone
		if alone {
			s.d.crowd.Set(c.Name, false)
		}
	}
	sp.has = false
	if err != nil || sp.doubt {
		n.haunt(c.keys, c.ID, s.ttl+s.timeout, err == nil || final(err))
	}
}

// departed waits until the masters have decided whether the claim was held until now.
func (s *session) departed(ctx context.Context, c *claim, f *inflight) (bool, error) {
	count := func() (yes, no int) {
		for i := range c.spots {
			switch c.spots[i].left {
			case 1:
				yes++
			case -1:
				no++
			}
		}
		return yes, no
	}
	// A majority that says yes and no does not decide. One that waits may have been let in just now and not know it: whoever can
	// answer says whether it was. One that is held was, but the next one needs masters that are free: they get a moment.
	var timer *time.Timer
	spent := false
	err := s.await(ctx, f, func() bool {
		yes, no := count()
		decided := yes >= s.d.quorum || spent || yes+f.coming(s.d) < s.d.quorum
		if !decided && yes+no >= s.d.quorum && c.state >= held && timer == nil {
			timer = time.AfterFunc(moment, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				spent = true
				f.check()
			})
		}
		return c.left || f.out == 0 || decided && yes+no >= s.d.quorum
	})
	s.mu.Lock()
	if timer != nil {
		timer.Stop()
	}
	yes, no := count()
	waits := c.others || yes < s.d.quorum && no <= len(s.d.nodes)-s.d.quorum // the others may say something else
	s.mu.Unlock()
	if err == nil && waits {
		s.linger(ctx, f, f.half())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.left {
		return c.held, nil
	}
	if err != nil {
		return false, err
	}
	if yes, no = count(); yes+no < s.d.quorum {
		return false, fmt.Errorf("redlock: release %q: %w", c.Name, f.unavailable(s.d))
	}
	// A majority has let it go. Masters that have not answered may have had it.
	held := yes >= s.d.quorum || c.state == held && no <= len(s.d.nodes)-s.d.quorum
	c.left, c.held = true, held
	c.end(gone)
	s.forget(c)
	return held, nil
}

// Requeue implements driver.Requeuer: the long script does both at once. Where a majority has let the old claim go and too few let the
// next one in, as when they have lost their votes, the next one waits: what is due to the masters that it lacks is asked by Wait and
// by renewals.
func (s *session) Requeue(ctx context.Context, oldClaim, nextClaim driver.Claim) (driver.Grant, bool, error) {
	old, err := s.releasing(oldClaim)
	if err != nil {
		return driver.Grant{}, false, err
	}
	next, err := s.claim(nextClaim)
	if err != nil {
		return driver.Grant{}, false, err
	}
	hears := ctx
	if s.d.members.Voters() < s.d.quorum { // whoever leaves does not wait for votes
		var cancel context.CancelFunc
		hears, cancel = context.WithCancel(ctx)
		cancel()
	}
	deaf := s.listening(hears, next)
	leaves, joins := newInflight(time.Now()), newInflight(time.Now())
	s.mu.Lock()
	next.need, next.begun, next.flight = joins.since, true, joins
	leaves.propose(s.d, old.Name, old.token)
	for i, n := range s.d.nodes {
		if deaf[i] != nil {
			s.depart(old, n, leaves)
			joins.give(n)
			joins.answer(n, deaf[i])
			next.spots[i].recheck.Retry(joins.since)
			continue
		}
		s.turn(old, next, n, leaves, joins)
	}
	s.mu.Unlock()
	joined := s.entered(ctx, next, joins)
	wasHeld := false
	if err = ctx.Err(); err == nil || joined == nil {
		wasHeld, err = s.departed(ctx, old, leaves)
	}
	s.mu.Lock()
	if err != nil { // what says of one half that nothing was changed says nothing of the other
		if joined != nil {
			err = joined
		}
		if leaves.touched() || joins.touched() {
			err = half(err)
		}
		s.mu.Unlock()
		return driver.Grant{}, false, err
	}
	if joined != nil && next.state == unsent {
		next.state, next.begun = waiting, true
	}
	s.mu.Unlock()
	g, err := s.state(next)
	return g, wasHeld, err
}

// turn has old leave one master and next join there. s.mu is held.
func (s *session) turn(old, next *claim, n *node, leaves, joins *inflight) {
	leaves.give(n)
	joins.give(n)
	next.spots[n.i].pending++
	n.give(order{
		call: s.lineCall(old, next, n, leaves.proposal, "0"), since: joins.since, until: time.Now().Add(s.timeout), vote: true, once: true,
		done: func(n *node, o *order, v any, err error) {
			r, err := parseLineReply(v, err)
			s.mu.Lock()
			defer s.mu.Unlock()
			next.spots[n.i].pending--
			left, joined := err, err
			if err == nil && r.state == lineVoteless {
				joined = fmt.Errorf("redlock: %s: %w: it has no vote among the masters of this program", n.name, driver.ErrNotSent)
				n.member.Recheck(joined)
			} else if err == nil && r.state == lineDamaged {
				joined = fmt.Errorf("redlock: %s: %w", n.name, redisconn.Classify(redisconn.ParseError(r.value)))
			}
			joins.answer(n, joined)
			if left != nil && !uncertain(left) && !n.member.Votes() { // so it was not asked
				leaves.out--
				s.depart(old, n, leaves)
			} else {
				leaves.answer(n, left)
				s.out(old, n, v, left)
			}
			s.heard(next, n, o, r, joined)
			leaves.check()
			joins.check()
		},
	})
}

// Close implements driver.Session.
func (s *session) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	leaving := s.claims.AllLeaving()
	s.mu.Unlock()
	var err error
	flights := make([]*inflight, len(leaving))
	for i, c := range leaving {
		flights[i] = s.leave(c)
	}
	for i, c := range leaving {
		if _, e := s.departed(ctx, c, flights[i]); e != nil && err == nil {
			err = e
		}
	}
	s.d.sessions.Remove(s)
	return err
}

// giveBack frees the masters that a claim without a majority has or may have. It leaves nothing behind on masters
// that answer; the others are asked until they do. It waits for them at most as long as the call, which began at since, has
// taken so far.
func (s *session) giveBack(ctx context.Context, c *claim, since time.Time) {
	f := newInflight(since)
	s.mu.Lock()
	c.leaving = true
	f.propose(s.d, c.Name, c.token)
	for i := range c.spots {
		if sp := &c.spots[i]; sp.has || sp.doubt || sp.begun || sp.pending > 0 {
			s.depart(c, s.d.nodes[i], f)
		}
	}
	s.mu.Unlock()
	if err := s.await(ctx, f, func() bool { return true }); err == nil {
		s.linger(ctx, f, time.Since(since))
	}
}

// withdraw has every master let a claim go that too many refuse. It waits for them as giveBack does.
func (s *session) withdraw(ctx context.Context, c *claim) {
	s.mu.Lock()
	begun := c.begun && c.state < held
	c.leaving = c.leaving || begun
	c.begun = c.begun && !begun
	s.mu.Unlock()
	if !begun {
		return
	}
	f := s.leave(c)
	if err := s.await(ctx, f, func() bool { return f.enough(s.d) }); err == nil {
		s.linger(ctx, f, grace)
	}
}
