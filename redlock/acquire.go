package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/mutant"
	"github.com/interlock-go/interlock/redisconn"
)

// Acquire implements driver.Session. A free name takes one short script on every master at once. A claim that gets no
// majority that way joins the line on every master with the long one, after this process has subscribed there; a name where
// others stood in line lately is asked for by the long script at once.
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
		return s.again(ctx, c, since)
	case !begun && !s.d.isCrowded(c.Name):
		if decided, err := s.take(ctx, c, since); decided || err != nil {
			return s.answer(c, err)
		}
	}
	return s.answer(c, s.join(ctx, c, since))
}

// answer is the claim's state, unless err says that it is not known.
func (s *session) answer(c *claim, err error) (driver.Grant, error) {
	if err == nil {
		return s.state(c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.state < gone && !c.begun {
		s.forget(c)
	}
	return driver.Grant{}, err
}

func (s *session) state(c *claim) (driver.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch c.state {
	case gone:
		return driver.Grant{}, driver.ErrGone
	case broken:
		return driver.Grant{}, driver.ErrBroken
	case unsent:
		g := c.grant()
		s.forget(c)
		return g, nil
	}
	return c.grant(), nil
}

// again renews a held claim on its masters.
func (s *session) again(ctx context.Context, c *claim, since time.Time) (driver.Grant, error) {
	f := newFlight(since)
	s.mu.Lock()
	for i := range c.spots {
		if c.spots[i].has {
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
			err = s.d.unavailable(f)
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

// take runs the short script on all masters. It reports whether that decided.
func (s *session) take(ctx context.Context, c *claim, since time.Time) (decided bool, err error) {
	f := newFlight(since)
	f.out = len(s.d.nodes)
	lines := false
	f.propose(s.d, c.Name, 0)
	keys := []string{c.keys.name, c.keys.counter, voteKey}
	done := func(n *node, o *order, v any, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		f.answer(n, err)
		sp := &c.spots[n.i]
		sp.pending--
		switch v := v.(type) {
		case int64:
			if v == 0 {
				lines = true
			} else if err == nil {
				sp.given(v, o.since)
			}
		case string:
			lines = lines || holderID(v) == c.ID // an answer got lost before
			if c.holder == nil {
				c.holder = holder(v)
			}
		}
		sp.doubt = sp.doubt || err != nil && uncertain(err)
		s.step(c)
		f.check()
	}
	s.mu.Lock()
	c.begun, c.flight = true, f
	for _, n := range s.d.nodes {
		value := make([]byte, 0, 256)
		c.spots[n.i].pending++
		n.give(order{
			call: redisconn.Call{Script: takeScript, Keys: keys, Args: []string{
				string(appendValue(value, c, n.channel(), s.owner)), s.ttlMS, f.proposal, s.d.fingerprint(),
			}},
			since: since, until: time.Now().Add(s.timeout), vote: true, done: done,
		})
		if mutant.On("Q9") {
			s.mu.Unlock()
			for one := range time.Tick(time.Millisecond) {
				s.mu.Lock()
				if c.spots[n.i].pending == 0 || one.IsZero() {
					break
				}
				s.mu.Unlock()
			}
		}
	}
	s.mu.Unlock()
	err = s.await(ctx, f, func() bool {
		return c.state >= held || c.settled() && (f.out == 0 || !c.raising && c.has()+f.out < s.d.quorum)
	})
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	state, silent := c.state, f.silent()
	line := lines
	s.mu.Unlock()
	switch {
	case state >= held:
		s.d.listenSoon()
		s.d.tell()
		return true, nil
	case silent > len(s.d.nodes)-s.d.quorum:
		s.linger(ctx, f, grace)
		return true, s.giveUp(c, f)
	case c.Queue || line:
		return false, nil
	}
	return true, s.giveBack(ctx, c)
}

// giveUp is for a claim that too few masters answered. Nothing was done where nothing left this process.
func (s *session) giveUp(c *claim, f *flight) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !f.sent && c.state == unsent {
		c.begun = false
	}
	return s.d.unavailable(f)
}

// giveBack frees the masters that a claim without a majority has or may have. It leaves nothing behind on masters
// that answer; the others are asked until they do.
func (s *session) giveBack(ctx context.Context, c *claim) error {
	f := newFlight(time.Now())
	s.mu.Lock()
	c.leaving = true
	f.propose(s.d, c.Name, c.token)
	for i := range c.spots {
		if sp := &c.spots[i]; (sp.has || sp.doubt || sp.pending > 0) && !mutant.On("Q5") {
			s.depart(c, s.d.nodes[i], f)
		}
	}
	s.mu.Unlock()
	if err := s.await(ctx, f, func() bool { return true }); err != nil {
		return err
	}
	s.linger(ctx, f, 5*grace)
	return nil
}

// join runs the long script on all masters: a claim that is new enters the line, one that is not asks for its state.
func (s *session) join(ctx context.Context, c *claim, since time.Time) error {
	hearing := s.listening(ctx, c)
	f := newFlight(since)
	s.mu.Lock()
	if c.leaving {
		s.mu.Unlock()
		return fmt.Errorf("redlock: %w: the claim is being released", driver.ErrNotSent)
	}
	c.begun, c.flight = true, f
	f.propose(s.d, c.Name, 0)
	for i, n := range s.d.nodes {
		if hearing[i] != nil {
			f.out++
			f.answer(n, hearing[i])
			continue
		}
		s.ask(c, n, f)
	}
	s.mu.Unlock()
	return s.entered(ctx, c, f)
}

// entered waits until the masters that were asked have decided that the claim is held, or that it is not for now.
func (s *session) entered(ctx context.Context, c *claim, f *flight) error {
	err := s.await(ctx, f, func() bool {
		return c.state >= held || c.settled() && (f.out == 0 || !c.raising && f.answered() >= s.d.quorum && c.has()+f.out < s.d.quorum)
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	undecided := c.state < held
	s.mu.Unlock()
	if undecided {
		s.linger(ctx, f, grace)
	}
	s.mu.Lock()
	state, enough := c.state, f.answered() >= s.d.quorum
	if state < held && c.Queue && enough {
		c.state = waiting
	}
	s.mu.Unlock()
	switch {
	case state >= held:
		s.d.listenSoon()
		s.d.tell()
	case !enough:
		return s.giveUp(c, f)
	case !c.Queue:
		return s.giveBack(ctx, c)
	}
	return nil
}

// ask runs the long script on one master. s.mu is held.
func (s *session) ask(c *claim, n *node, f *flight) {
	f.out++
	sp := &c.spots[n.i]
	sp.pending++
	sp.lookAt = time.Time{}
	mode := "0"
	if sp.doubt && !sp.has {
		mode = "-1" // an order to step back may be under way, and must not fit the grant that we count on
	}
	n.give(order{
		call: s.lineCall(nil, c, n, f.proposal, mode), since: f.since, until: time.Now().Add(s.timeout), vote: true,
		done: func(n *node, o *order, v any, err error) {
			r, err := parseLineReply(v, err)
			s.mu.Lock()
			defer s.mu.Unlock()
			c.spots[n.i].pending--
			f.answer(n, err)
			s.heard(c, n, o.since, r, err)
			f.check()
		},
	})
}

// heard takes in one master's answer about a claim's state. s.mu is held.
func (s *session) heard(c *claim, n *node, since time.Time, r lineReply, err error) {
	sp := &c.spots[n.i]
	now := time.Now()
	if err != nil {
		sp.doubt = sp.doubt || uncertain(err)
		sp.retry(now)
		c.changed()
		s.step(c)
		return
	}
	if since.After(sp.known) {
		sp.known = since
	}
	switch r.state {
	case lineHas:
		sp.given(r.counter, since)
	case lineBroken:
		if !c.leaving {
			c.end(broken)
		}
	default:
		sp.lacks(r.counter)
		if !sp.has && !sp.yielding {
			sp.schedule(now, r.wait, r.head == 1, r.why)
		}
		if h := holder(r.value); h != nil {
			c.holder = h
		}
		s.d.setCrowded(c.Name, c.Queue)
		if c.state == waiting {
			c.changed()
		}
	}
	s.step(c)
	if r.older == 1 && r.state == lineHas {
		s.yield(c, n)
	}
}

// lineReply is the answer of the long script.
type lineReply struct {
	state, left, counter, wait, head, why, older int64
	value                                        string
}

// States in the answer of the long script.
const (
	lineOut = iota
	lineWaits
	lineHas
	lineBroken
)

func parseLineReply(v any, err error) (r lineReply, _ error) {
	if err != nil {
		return r, err
	}
	f, _ := v.([]any)
	if len(f) != 8 {
		return r, errors.New("redlock: the long script answered something else than eight fields")
	}
	for i, n := range []*int64{&r.state, &r.left, &r.counter, &r.wait, &r.head, &r.why, &r.older} {
		var ok bool
		if *n, ok = f[i].(int64); !ok {
			return r, fmt.Errorf("redlock: the long script answered %T where a number belongs", f[i])
		}
	}
	r.value, _ = f[7].(string)
	return r, nil
}

// lineCall is a run of the long script at n in which old leaves and c joins; either may be nil. s.mu is held.
func (s *session) lineCall(old, c *claim, n *node, proposal, mode string) redisconn.Call {
	args := make([]string, 4, 12)
	args[1], args[2], args[3] = digit(s.d.options.Shared), s.keepMS, proposal
	var k keys
	if old != nil {
		k, args[0] = old.keys, old.ID
	}
	if c != nil {
		k = c.keys
		args = append(args, c.ID, s.ttlMS, digit(c.Queue), n.channel(), c.place(), string(appendInfo(nil, s.owner, c.Claim)), mode, s.d.fingerprint())
	}
	return redisconn.Call{Script: lineScript, Keys: k.all(), Args: args}
}

func digit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
