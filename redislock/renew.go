package redislock

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// part is one script of a renewal, the claims that it is about, and the answer.
type part struct {
	call  redisconn.Call
	about []*claim                 // none: other parts have taken this one's place
	sub   *redisstore.Subscription // with whose channel a claim that waits is asked for
	reply redisconn.Reply
}

// Renew implements driver.Session. Claims that hold, alone or not, are renewed a hundred a script,
// on a cluster by slot; claims that wait ask for their state as in Acquire. Everything goes out
// together.
func (s *session) Renew(ctx context.Context) (driver.Renewal, error) {
	s.Mu.Lock()
	if s.Closed {
		s.Mu.Unlock()
		return driver.Renewal{}, driver.ErrSessionLost
	}
	alone, aged, shared, waits, lost := s.partition()
	s.Mu.Unlock()

	timeout := s.RenewTimeout(ctx)
	var parts []*part
	for _, c := range aged {
		parts = append(parts, s.look(c))
	}
	for _, some := range redisstore.Groups(s.d.store, alone, redisstore.PerScript, nameOf) {
		parts = append(parts, s.hold(some))
	}
	for _, some := range redisstore.Groups(s.d.store, shared, redisstore.PerScript, nameOf) {
		parts = append(parts, s.share(some))
	}
	parts = append(parts, s.questions(ctx, timeout/4, waits)...)
	sent := len(parts)
	if sent == 0 {
		return s.Renewed(ctx, sent, lost, nil)
	}
	err := s.run(ctx, timeout, parts)
	if err == nil {
		parts = append(parts, s.followUp(ctx, timeout, parts)...)
		var more []driver.Loss
		more, err = s.judge(ctx, parts)
		lost = append(lost, more...)
	}
	return s.Renewed(ctx, sent, lost, err)
}

func nameOf(c *claim) string { return c.Name }

// partition returns the claims that hold alone, those of them whose counters are to be given more
// time, those that share, by name, those that wait, and those that are lost, until they are
// released. The long script renews the second kind, since it gives counters time: once in an eighth
// of what they have. Mu is held.
func (s *session) partition() (alone, aged, shared, waits []*claim, lost []driver.Loss) {
	now := time.Now()
	for _, c := range s.Claims {
		switch {
		case c.Leaving || c.State == redisstore.Unsent:
		case c.State >= redisstore.Gone:
			lost = append(lost, c.Loss())
		case c.State == redisstore.Waiting:
			waits = append(waits, c)
		case !c.exclusive():
			shared = append(shared, c)
		case s.d.options.KeepCounters < 0 || now.Sub(c.counted) < s.d.options.KeepCounters/8:
			alone = append(alone, c)
		default:
			c.counted = now
			aged = append(aged, c)
		}
	}
	slices.SortFunc(shared, func(a, b *claim) int { return strings.Compare(a.Name, b.Name) })
	return alone, aged, shared, waits, lost
}

// run sends parts, and records their answers.
func (s *session) run(ctx context.Context, timeout time.Duration, parts []*part) error {
	calls := make([]redisconn.Call, len(parts))
	for i, p := range parts {
		calls[i] = p.call
	}
	replies, err := redisstore.Together(ctx, s.d.store.Run, timeout, calls)
	if err != nil {
		return err
	}
	for i, p := range parts {
		p.reply = replies[i]
	}
	return nil
}

// hold renews claims that hold alone.
func (s *session) hold(claims []*claim) *part {
	call := redisconn.Call{
		Script: holdScript, Keys: make([]string, len(claims)), Args: make([]string, len(claims)+1), Again: redisconn.Idempotent,
	}
	call.Args[0] = s.TTLMS
	for i, c := range claims {
		call.Keys[i], call.Args[i+1] = c.keys.name, layout+c.ID
	}
	return &part{call: call, about: claims}
}

// share renews claims that share, those of a name one after another.
func (s *session) share(claims []*claim) *part {
	call := redisconn.Call{Script: shareScript, Args: []string{s.TTLMS, s.KeepMS}, Again: redisconn.Idempotent}
	for rest := claims; len(rest) > 0; {
		k := rest[0].keys
		n := slices.IndexFunc(rest, func(c *claim) bool { return c.keys != k })
		if n < 0 {
			n = len(rest)
		}
		call.Keys, call.Args = append(call.Keys, k.name, k.line, k.claims), append(call.Args, strconv.Itoa(n))
		for _, c := range rest[:n] {
			call.Args = append(call.Args, c.ID)
		}
		rest = rest[n:]
	}
	return &part{call: call, about: claims}
}

// look returns the part that runs the long script for a claim that was in line before. It does not
// put it there again, so it may be repeated.
func (s *session) look(c *claim) *part {
	s.Mu.Lock()
	sub := c.sub
	s.Mu.Unlock()
	call := s.lineCall(nil, c, sub, true)
	call.Again = redisconn.Idempotent
	return &part{call: call, about: []*claim{c}}
}

// questions returns the parts for claims that wait. Subscriptions that must be made again may take
// patience only: everything else waits for them.
func (s *session) questions(ctx context.Context, patience time.Duration, claims []*claim) (parts []*part) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, c := range claims {
		sub, err := s.d.subs.Listen(ctx, c.Name)
		s.Mu.Lock()
		waits := c.State == redisstore.Waiting
		if err == nil {
			c.sub = sub
		}
		s.Mu.Unlock()
		if err != nil && waits {
			continue // it would get no message; Wait meets the same error and returns it
		}
		p := s.look(c)
		p.sub = sub
		parts = append(parts, p)
	}
	return parts
}

// followUp sends the requests that answers ask for, as parts of their own: the long script looks
// for claims that share and were not renewed; and where a cluster is just moving a slot, claims are
// renewed one by one: it takes no script for keys of which some are here and some there.
func (s *session) followUp(ctx context.Context, timeout time.Duration, parts []*part) (more []*part) {
	for _, p := range parts {
		script := p.call.Script
		switch {
		case len(p.about) > 1 && redisconn.Is(p.reply.Err, "TRYAGAIN"):
			for _, c := range p.about {
				if script == shareScript {
					more = append(more, s.look(c))
				} else {
					more = append(more, s.hold([]*claim{c}))
				}
			}
			p.about = nil
		case script == shareScript:
			numbers, _ := p.reply.Value.([]any)
			for _, n := range numbers {
				if n, _ := n.(int64); n > 0 && n <= int64(len(p.about)) {
					more = append(more, s.look(p.about[n-1]))
				}
			}
		}
	}
	if len(more) == 0 {
		return nil
	}
	if err := s.run(ctx, timeout, more); err != nil {
		for _, p := range more {
			p.reply.Err = err
		}
	}
	return more
}

// judge handles the answers and returns the claims that are lost, or why the session was not
// renewed.
//
// A question for a claim that waits may fail: it keeps its place, and Wait meets the same error, at
// once where that is a refusal. A claim that shares a key which holds something else by now is
// lost. Where a cluster has some masters that answer and others that do not, the session is renewed
// late in its time all the same, without the claims that it could not renew: they are given up. But
// not by the first renewal that meets this: it may have met no more than a connection that had died
// unnoticed.
func (s *session) judge(ctx context.Context, parts []*part) (lost []driver.Loss, err error) {
	var failed []*claim
	answered := 0
	for _, p := range parts {
		refused := errors.Is(p.reply.Err, driver.ErrRefused)
		switch {
		case len(p.about) == 0:
			continue
		case refused && p.call.Script == lineScript && s.waits(p.about[0]):
			answered++
			s.ask(p.about[0].ID)
			continue
		case p.reply.Err != nil && p.call.Script == lineScript && s.waits(p.about[0]):
			err = p.reply.Err
			continue
		case refused && p.call.Script == lineScript:
			lost = append(lost, s.giveUp(p.about)...)
			continue
		case p.reply.Err != nil:
			err = p.reply.Err
			failed = append(failed, p.about...)
			continue
		}
		answered++
		switch p.call.Script {
		case holdScript:
			lost = append(lost, s.Missing(p.about, p.reply.Value)...)
		case lineScript: // of claims that share, it has said more than the script share
			r, err := parseLineReply(p.reply.Value)
			if err != nil {
				return nil, err
			}
			lost = append(lost, s.looked(p, r)...)
		}
	}
	again := s.failedAgain(len(failed) > 0)
	if answered == 0 && err != nil || len(failed) > 0 && !(again && s.late(ctx)) {
		return nil, err
	}
	return append(lost, s.giveUp(failed)...), nil
}

// failedAgain records whether a renewal was answered for some claims and not for others, and
// reports whether the one before was so.
func (s *session) failedAgain(partial bool) (before bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	before, s.partial = s.partial, partial
	return before
}

// late reports whether there are several masters and a renewal that must be answered by ctx's
// deadline has only the last third of the session's time left.
func (s *session) late(ctx context.Context) bool {
	at, ends := ctx.Deadline()
	return s.d.store.Cluster && ends && time.Until(at) < s.TTL/3
}

func (s *session) waits(c *claim) bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return c.State == redisstore.Waiting
}

// giveUp records that claims are lost and returns them.
func (s *session) giveUp(claims []*claim) (lost []driver.Loss) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, c := range claims {
		if !c.Leaving {
			c.End(redisstore.Gone)
			lost = append(lost, c.Loss())
		}
	}
	return lost
}

// looked handles the state of a claim that waits or shares, and returns it if it is lost.
func (s *session) looked(p *part, r lineReply) []driver.Loss {
	c := p.about[0]
	_ = s.settle(c, p.sub, r) // a claim in line cannot be a misfit
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if !c.Leaving && c.State >= redisstore.Gone {
		return []driver.Loss{c.Loss()}
	}
	c.Change.Give()
	return nil
}
