package redlock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redlock/internal/gather"
)

// Acquire implements driver.Session. A free name takes one short script on every master at once. A
// claim that gets no majority that way joins the line on every master with the long one, after this
// process has subscribed there; a name where others stood in line lately is asked for by the long
// script at once.
func (s *session) Acquire(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, fmt.Errorf("redlock: %w: %w", driver.ErrNotSent, err)
	}
	c, err := s.claim(dc)
	if err != nil {
		return driver.Grant{}, err
	}
	since := time.Now()
	s.mu.Lock()
	if c.leaving {
		s.mu.Unlock()
		return driver.Grant{}, fmt.Errorf("redlock: %w: the claim is being released", driver.ErrNotSent)
	}
	state, begun := c.state, c.begun
	if state < held {
		c.need = since
	}
	s.mu.Unlock()
	switch {
	case state >= gone:
		return s.state(c)
	case state == held:
		return s.renewOne(ctx, c, since)
	case !begun && !s.d.contended.At(c.Name):
		if decided, err := s.take(ctx, c, since); decided || err != nil {
			return s.answer(ctx, c, err)
		}
	}
	return s.answer(ctx, c, s.join(ctx, c, since))
}

// answer is the claim's state, unless err says that it is not known. One that is refused stands
// nowhere then, also where others than those that refuse it have put it into their lines.
func (s *session) answer(ctx context.Context, c *claim, err error) (driver.Grant, error) {
	if err == nil {
		return s.state(c)
	}
	if final(err) {
		s.cleanupRefused(ctx, c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.state < gone && !c.begun {
		s.forget(c)
	}
	return driver.Grant{}, err
}

// renewOne renews a held claim on its masters.
func (s *session) renewOne(ctx context.Context, c *claim, since time.Time) (driver.Grant, error) {
	f := newInflight(since)
	s.mu.Lock()
	for i := range c.nodes {
		if c.nodes[i].has {
			s.confirm(c, s.d.nodes[i], f)
		}
	}
	s.mu.Unlock()
	err := s.await(ctx, f, func() bool {
		return f.out == 0 || c.state >= gone || c.good(since, s.Valid()) >= s.d.quorum
	})
	if err != nil {
		return driver.Grant{}, err
	}
	s.mu.Lock()
	if c.state == held && c.good(since, s.Valid()) < s.d.quorum {
		if c.has() >= s.d.quorum {
			err = f.unavailable(s.d)
		} else {
			c.end(gone)
		}
	}
	s.mu.Unlock()
	if err != nil {
		return driver.Grant{}, err
	}
	return s.state(c)
}

// take runs the short script on all masters. It reports whether that decided. A try that gets some
// of the masters, of which others got the rest, asks again for those: see outbid.
func (s *session) take(ctx context.Context, c *claim, since time.Time) (decided bool, err error) {
	b := bid{stands: make([]string, len(s.d.nodes))}
	var until time.Time
	for at := since; ; at = time.Now() {
		f := s.bid(c, &b, at)
		err = s.await(ctx, f, func() bool {
			return c.state >= held || c.idle() && (f.out == 0 || !c.raising && c.has()+f.coming(s.d) < s.d.quorum && f.enough(s.d))
		})
		if err != nil {
			return false, err
		}
		s.mu.Lock()
		split := c.state < held && !c.Queue && !c.outbid(b.stands, s.d.quorum)
		s.mu.Unlock()
		if split { // the masters that are still to answer may be those that it has
			s.linger(ctx, f, stragglerWait)
		}
		s.mu.Lock()
		state, lost := c.state, f.out == 0 && f.known(s.d) < s.d.quorum || f.silent() > len(s.d.nodes)-s.d.quorum
		line, leads := b.line, c.has() > 0 && !c.outbid(b.stands, s.d.quorum)
		s.mu.Unlock()
		switch {
		case state >= held:
			s.d.holding.Began()
			s.d.tell()
			return true, nil
		case lost:
			s.linger(ctx, f, stragglerWait) // for a true count: those that refuse are the first to answer
			return true, s.giveUp(c, f)
		case c.Queue || line:
			return false, nil
		}
		now := time.Now()
		if until.IsZero() {
			until = now.Add(min(stragglerWait+3*now.Sub(since), laggardWait))
		}
		if !leads || now.After(until) {
			s.cleanup(ctx, c, since)
			return true, nil
		}
		if !gather.Sleep(ctx, rand.N(retryPause)) {
			return false, ctx.Err()
		}
	}
}

// bid is what a claim that runs the short script, once or more often, has heard.
type bid struct {
	line   bool     // a line stands somewhere, or the claim does already, since an answer got lost: the long script decides
	stands []string // by master: the value that stands in its way
}

// bid runs the short script on all masters, or once more on those at which something stood in the
// way.
func (s *session) bid(c *claim, b *bid, at time.Time) *inflight {
	f := newInflight(at)
	f.propose(s.d, c.Name, 0)
	keys := c.keys.grants()
	done := func(n *node, o *order, v any, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		f.answer(n, err)
		ns := &c.nodes[n.i]
		ns.pending--
		switch v := v.(type) {
		case int64:
			if v == 0 {
				b.line = true
			} else if err == nil {
				ns.given(v, o.since)
			}
		case string:
			b.line = b.line || holderID(v) == c.ID
			b.stands[n.i] = v
			s.d.observeTicket(ticketOf(v))
			if c.stands == "" {
				c.stands = v
			}
		}
		ns.failed(err)
		ns.doubt = ns.doubt || o.resent
		s.step(c)
		f.check()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	again := c.begun
	c.begun, c.acquiring = true, f
	for _, n := range s.d.nodes {
		if again && b.stands[n.i] == "" {
			continue
		}
		b.stands[n.i] = ""
		c.nodes[n.i].pending++
		f.give(n)
		n.give(order{
			call: redisconn.Call{Script: takeScript, Keys: keys, Args: []string{
				c.value(n.channel()), s.ttlMS, f.proposal, n.member.Vote(),
			}},
			since: at, until: time.Now().Add(s.timeout), vote: true, done: done,
		})
	}
	return f
}

// retryPause bounds the pause of a try that asks again.
const retryPause = 2 * time.Millisecond

// outbid reports whether a try without a majority releases the masters that it has: another claim
// has a majority, has any master with an older ticket, or has one where somebody waits. So of those
// that split the masters just the oldest keeps what it has, and asks again for what the others
// release. stands are the values in its way.
func (c *claim) outbid(stands []string, quorum int) bool {
	for _, v := range stands {
		n, id := 0, holderID(v)
		for _, other := range stands {
			if other == v || id != "" && holderID(other) == id {
				n++
			}
		}
		older, waited := false, false
		if id != "" {
			ticket := ticketOf(v)
			older, waited = ticket < c.ticket || ticket == c.ticket && id < c.ID, v[headLen] == '+'
		}
		if v != "" && (n >= quorum || older || waited) {
			c.stands = v
			return true
		}
	}
	return false
}
