package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

// join runs the long script on all masters: a claim that is new enters the line, one that is not
// asks for its state.
func (s *session) join(ctx context.Context, c *claim, since time.Time) error {
	failed := s.subscribeAll(ctx, c)
	f := newInflight(since)
	s.mu.Lock()
	if c.leaving {
		s.mu.Unlock()
		return fmt.Errorf("redlock: %w: the claim is being released", driver.ErrNotSent)
	}
	c.begun, c.acquiring, f.joins = true, f, true
	f.propose(s.d, c.Name, 0)
	for i, n := range s.d.nodes {
		if failed[i] != nil && !n.subscribed() { // what confirms after this finds the call
			f.give(n)
			f.answer(n, failed[i])
			continue
		}
		s.ask(c, n, f)
	}
	s.mu.Unlock()
	return s.awaitJoined(ctx, c, f)
}

// awaitJoined waits until the masters that were asked have decided that the claim is held, or that
// it is not for now.
func (s *session) awaitJoined(ctx context.Context, c *claim, f *inflight) error {
	err := s.await(ctx, f, func() bool {
		return c.state >= held || c.idle() && (f.out == 0 || !c.raising && c.has()+f.coming(s.d) < s.d.quorum && f.enough(s.d))
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	undecided := c.state < held && c.Queue
	s.mu.Unlock()
	if undecided {
		s.linger(ctx, f, f.half())
	}
	s.mu.Lock()
	state, enough := c.state, f.answered() >= s.d.quorum
	if state < held && c.Queue && enough {
		c.state = waiting
	}
	s.mu.Unlock()
	switch {
	case state >= held:
		s.d.holding.Began()
		s.d.tell()
	case !enough:
		return s.giveUp(c, f)
	case !c.Queue:
		s.cleanup(ctx, c, f.since)
	}
	return nil
}

// ask runs the long script on one master. s.mu is held.
func (s *session) ask(c *claim, n *node, f *inflight) {
	f.give(n)
	ns := &c.nodes[n.i]
	ns.pending++
	ns.anew, ns.recheck.At = false, time.Time{}
	mode := "0"
	if ns.doubt && !ns.has {
		mode = "-1" // an order to step back may be under way, and must not fit the grant that we count on
	}
	n.give(order{
		call: s.lineCall(nil, c, n, f.proposal, mode), since: f.since, until: time.Now().Add(s.timeout), vote: true,
		done: func(n *node, o *order, v any, err error) {
			r, err := parseLineReply(v, err)
			s.mu.Lock()
			defer s.mu.Unlock()
			c.nodes[n.i].pending--
			c.nodes[n.i].doubt = c.nodes[n.i].doubt || o.resent
			if final(err) && !f.joins { // for the other claims of a renewal the master is there
				f.answer(n, nil)
			} else {
				f.answer(n, err)
			}
			s.onAnswer(c, n, o, r, err)
			f.check()
		},
	})
}

// onAnswer handles one master's answer about a claim's state. s.mu is held.
//
// Messages and answers come by different connections, so the later may be read first. An answer
// that says when to ask again does not undo a request to ask at once: a message that may be newer,
// or the end of the subscription that it was asked with.
func (s *session) onAnswer(c *claim, n *node, o *order, r lineReply, err error) {
	ns := &c.nodes[n.i]
	now := time.Now()
	if err != nil {
		ns.failed(err)
		if final(err) {
			ns.refused = err
		}
		ns.recheck.Retry(now)
		c.change.Give()
		s.step(c)
		return
	}
	ns.refused = nil
	if o.since.After(ns.known) {
		ns.known = o.since
	}
	s.d.observeTicket(r.last)
	switch r.state {
	case lineHas:
		ns.given(r.counter, o.since)
	case lineBroken:
		if !c.leaving {
			c.end(broken)
		}
	default:
		ns.lacks(r.counter)
		if !ns.has && !ns.yielding {
			ns.recheck.Schedule(now, r.wait, r.head == 1, r.why)
			if ns.anew || c.Queue && !n.subscribedTo(o.call.Args[channelAt]) {
				c.asks(n)
			}
		}
		if r.value != "" {
			c.stands = r.value
			s.d.observeTicket(ticketOf(r.value))
		}
		s.d.contended.Set(c.Name, c.Queue)
		if c.state == waiting {
			c.change.Give()
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
	value, last                                  string
}

// States in the answer of the long script.
const (
	lineOut = iota
	lineWaits
	lineHas
	lineBroken
	lineVoteless
	lineDamaged
)

func parseLineReply(v any, err error) (r lineReply, _ error) {
	if err != nil {
		return r, err
	}
	f, _ := v.([]any)
	if len(f) != 9 {
		return r, errors.New("redlock: the long script answered something else than nine fields")
	}
	for i, n := range []*int64{&r.state, &r.left, &r.counter, &r.wait, &r.head, &r.why, &r.older} {
		var ok bool
		if *n, ok = f[i].(int64); !ok {
			return r, fmt.Errorf("redlock: the long script answered %T where a number belongs", f[i])
		}
	}
	r.value, _ = f[7].(string)
	r.last, _ = f[8].(string)
	return r, nil
}

// channelAt is where the long script takes the channel of its claim.
const channelAt = 7

// lineCall is a run of the long script at n in which old leaves and c joins; either may be nil.
// s.mu is held.
func (s *session) lineCall(old, c *claim, n *node, proposal, mode string) redisconn.Call {
	args := make([]string, 4, 12)
	args[1], args[2], args[3] = digit(s.d.options.Shared), s.keepMS, proposal
	var all []string
	if old != nil {
		all, args[0] = old.all, old.ID
	}
	if c != nil {
		all = c.all
		args = append(args, c.ID, s.ttlMS, digit(c.Queue), n.channel(), c.ticket, c.info, mode, n.member.Vote())
	}
	return redisconn.Call{Script: lineScript, Keys: all, Args: args}
}

// giveUp is for a claim that too few masters answered. Nothing was done where nothing left this
// process.
func (s *session) giveUp(c *claim, f *inflight) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !f.touched() && c.state == unsent {
		c.begun = false
	}
	if err := f.refusing(s.d); err != nil {
		return err
	}
	return f.unavailable(s.d)
}
