package redlock

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

// Release implements driver.Session. One script on every master frees it, or hands it on if others
// wait; all are offered the same counter for the next holder.
func (s *session) Release(ctx context.Context, dc driver.Claim) (bool, error) {
	c, err := s.releasing(dc)
	if err != nil {
		return false, err
	}
	return s.awaitReleased(ctx, c, s.sendReleases(c))
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

// sendReleases releases the claim on every master, also on those that seem not to have it: the
// answer that said so may be older than a request under way.
func (s *session) sendReleases(c *claim) *inflight {
	f := newInflight(time.Now())
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.left {
		return f
	}
	f.propose(s.d, c.Name, c.token)
	for _, n := range s.d.nodes {
		s.sendRelease(c, n, f)
	}
	return f
}

// sendRelease releases the claim on one master. One that does not answer is asked again until it
// does. s.mu is held.
func (s *session) sendRelease(c *claim, n *node, f *inflight) {
	f.give(n)
	n.give(order{
		call: s.lineCall(c, nil, n, f.proposal, ""), since: f.since, until: time.Now().Add(s.timeout),
		done: func(n *node, _ *order, v any, err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			f.answer(n, err)
			s.onReleased(c, n, v, err)
			f.check()
		},
	})
}

// onReleased handles a master's answer to a release, alone or together with the enqueue of another
// claim. s.mu is held.
func (s *session) onReleased(c *claim, n *node, v any, err error) {
	ns := &c.nodes[n.i]
	if err == nil {
		r, alone := lineReply{}, v == int64(1)
		if !alone {
			r, _ = parseLineReply(v, nil)
			s.d.observeTicket(r.last)
		}
		if alone || r.left == 1 {
			ns.left = 1
		} else if ns.left == 0 {
			ns.left = -1
		}
		c.others = c.others || !alone
		if alone {
			s.d.contended.Set(c.Name, false)
		}
	}
	ns.has = false
	if err != nil || ns.doubt {
		n.addOrphan(c.keys, c.ID, s.ttl+s.timeout, err == nil || final(err))
	}
}

// awaitReleased waits until the masters have decided whether the claim was held until now.
func (s *session) awaitReleased(ctx context.Context, c *claim, f *inflight) (bool, error) {
	count := func() (yes, no int) {
		for i := range c.nodes {
			switch c.nodes[i].left {
			case 1:
				yes++
			case -1:
				no++
			}
		}
		return yes, no
	}
	// A majority that says yes and no does not decide. One that waits may have been let in just now
	// and not know it: the masters that can answer say whether it was. One that is held was, but
	// the next one needs masters that are free: they get a moment.
	var timer *time.Timer
	spent := false
	err := s.await(ctx, f, func() bool {
		yes, no := count()
		decided := yes >= s.d.quorum || spent || yes+f.coming(s.d) < s.d.quorum
		if !decided && yes+no >= s.d.quorum && c.state >= held && timer == nil {
			timer = time.AfterFunc(laggardWait, func() {
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

// Requeue implements driver.Requeuer: the long script does both at once. Where a majority has let
// the old claim go and too few let the next one in, as when they have lost their votes, the next
// one waits: what is due to the masters that it lacks is asked by Wait and by renewals.
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
	if s.d.members.Voters() < s.d.quorum { // a release does not wait for votes
		var cancel context.CancelFunc
		hears, cancel = context.WithCancel(ctx)
		cancel()
	}
	failed := s.subscribeAll(hears, next)
	leaves, joins := newInflight(time.Now()), newInflight(time.Now())
	s.mu.Lock()
	next.need, next.begun, next.acquiring = joins.since, true, joins
	leaves.propose(s.d, old.Name, old.token)
	for i, n := range s.d.nodes {
		if failed[i] != nil {
			s.sendRelease(old, n, leaves)
			joins.give(n)
			joins.answer(n, failed[i])
			next.nodes[i].recheck.Retry(joins.since)
			continue
		}
		s.sendRequeue(old, next, n, leaves, joins)
	}
	s.mu.Unlock()
	joined := s.awaitJoined(ctx, next, joins)
	wasHeld := false
	if err = ctx.Err(); err == nil || joined == nil {
		wasHeld, err = s.awaitReleased(ctx, old, leaves)
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

// sendRequeue releases old on one master and lets next join there, in one script. s.mu is held.
func (s *session) sendRequeue(old, next *claim, n *node, leaves, joins *inflight) {
	leaves.give(n)
	joins.give(n)
	next.nodes[n.i].pending++
	n.give(order{
		call: s.lineCall(old, next, n, leaves.proposal, "0"), since: joins.since, until: time.Now().Add(s.timeout), vote: true, noRetry: true,
		done: func(n *node, o *order, v any, err error) {
			r, err := parseLineReply(v, err)
			s.mu.Lock()
			defer s.mu.Unlock()
			next.nodes[n.i].pending--
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
				s.sendRelease(old, n, leaves)
			} else {
				leaves.answer(n, left)
				s.onReleased(old, n, v, left)
			}
			s.onAnswer(next, n, o, r, joined)
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
		flights[i] = s.sendReleases(c)
	}
	for i, c := range leaving {
		if _, e := s.awaitReleased(ctx, c, flights[i]); e != nil && err == nil {
			err = e
		}
	}
	s.d.sessions.Remove(s)
	return err
}

// cleanup frees the masters that a claim without a majority has or may have. It leaves nothing
// behind on masters that answer; the others are asked until they do. It waits for them at most as
// long as the call, which began at since, has taken so far.
func (s *session) cleanup(ctx context.Context, c *claim, since time.Time) {
	f := newInflight(since)
	s.mu.Lock()
	c.leaving = true
	f.propose(s.d, c.Name, c.token)
	for i := range c.nodes {
		if ns := &c.nodes[i]; ns.has || ns.doubt || ns.begun || ns.pending > 0 {
			s.sendRelease(c, s.d.nodes[i], f)
		}
	}
	s.mu.Unlock()
	if err := s.await(ctx, f, func() bool { return true }); err == nil {
		s.linger(ctx, f, time.Since(since))
	}
}

// cleanupRefused releases a claim that too many masters refuse on all of them. It waits for them as
// cleanup does.
func (s *session) cleanupRefused(ctx context.Context, c *claim) {
	s.mu.Lock()
	begun := c.begun && c.state < held
	c.leaving = c.leaving || begun
	c.begun = c.begun && !begun
	s.mu.Unlock()
	if !begun {
		return
	}
	f := s.sendReleases(c)
	if err := s.await(ctx, f, func() bool { return f.enough(s.d) }); err == nil {
		s.linger(ctx, f, stragglerWait)
	}
}
