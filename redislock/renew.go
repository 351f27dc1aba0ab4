package redislock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/internal/sessions"
	"github.com/interlock-go/interlock/redisconn"
)

// batch is how many names one script renews.
const batch = 100

// renewal is one Renew: the runs of scripts and the claims that each is about.
type renewal struct {
	calls []redisconn.Call
	about [][]*claim
	ears  map[*claim]*ear // with whose channel claims that wait are asked for
}

// Renew implements driver.Session. Claims that hold, alone or not, are renewed a hundred a script, on a cluster by slot; claims
// that wait ask for their state as in Acquire. Everything goes out together. One try takes at most half of what
// is left of ctx, so that a connection that has died unnoticed does not use up the only one.
func (s *session) Renew(ctx context.Context) (driver.Renewal, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return driver.Renewal{}, driver.ErrSessionLost
	}
	alone, shared, waits, lost := s.standing()
	alone, old := s.aged(alone)
	s.mu.Unlock()

	timeout := s.timeout
	if end, ok := ctx.Deadline(); ok {
		timeout = max(min(timeout, time.Until(end)/2), time.Millisecond)
	}
	var r renewal
	for _, c := range old {
		r.add(s.lookCall, []*claim{c})
	}
	r.holds(s, alone, s.holdCall)
	r.holds(s, shared, s.shareCall)
	r.asks(ctx, timeout/4, s, waits)
	if len(r.calls) == 0 {
		if err := redisstore.Reach(sessions.Within(ctx, timeout), s.d.conn); err != nil {
			return driver.Renewal{}, fmt.Errorf("redislock: renew: %w", err)
		}
		return driver.Renewal{Valid: s.Valid(), Lost: lost}, nil
	}
	replies, err := redisstore.Together(ctx, s.d.run, timeout, r.calls)
	if err != nil {
		return driver.Renewal{}, fmt.Errorf("redislock: renew: %w", err)
	}
	more, err := r.takeIn(ctx, s, r.follow(ctx, s, timeout, replies))
	if err != nil {
		return driver.Renewal{}, fmt.Errorf("redislock: renew: %w", err)
	}
	return driver.Renewal{Valid: s.Valid(), Lost: append(lost, more...)}, nil
}

// takeIn takes in the answers and returns the claims that are lost, or why the session was not renewed.
//
// A question for a claim that waits may fail: it keeps its place, and Wait meets the same error, at once where that is a refusal. A claim that shares a key
// which holds something else by now is lost. Where a cluster has some masters that answer and others that do not, the
// session is renewed late in its time all the same, without the claims that it could not renew: they are given up. But not by
// the first renewal that meets this: it may have met no more than a connection that had died unnoticed.
func (r *renewal) takeIn(ctx context.Context, s *session, replies []redisconn.Reply) (lost []driver.Loss, err error) {
	var failed []*claim
	answered := 0
	for i, reply := range replies {
		about := r.about[i]
		switch {
		case len(about) == 0: // followed by others
			continue
		case errors.Is(reply.Err, driver.ErrRefused) && r.calls[i].Script == lineScript && s.waits(about[0]):
			answered++
			s.recheck(about[0].ID)
			continue
		case reply.Err != nil && r.calls[i].Script == lineScript && s.waits(about[0]):
			err = reply.Err
			continue
		case errors.Is(reply.Err, driver.ErrRefused) && r.calls[i].Script == lineScript:
			lost = append(lost, s.giveUp(about)...)
			continue
		case reply.Err != nil:
			err = reply.Err
			failed = append(failed, about...)
			continue
		}
		answered++
		switch r.calls[i].Script {
		case holdScript:
			lost = append(lost, s.missing(about, reply.Value)...)
			continue
		case shareScript: // the long script has said more of some of them
			continue
		}
		answer, err := parseLineReply(reply.Value)
		if err != nil {
			return nil, err
		}
		lost = append(lost, s.asked(about[0], r.ears[about[0]], answer)...)
	}
	defer s.note(len(failed) > 0)
	if answered == 0 && err != nil || len(failed) > 0 && !s.late(ctx) {
		return nil, err
	}
	return append(lost, s.giveUp(failed)...), nil
}

// late reports whether there are several masters and a renewal that must be answered by ctx's deadline has only the last
// third of a session's time left, and is not the first that some of them do not answer.
func (s *session) late(ctx context.Context) bool {
	s.mu.Lock()
	again := s.partial
	s.mu.Unlock()
	at, ends := ctx.Deadline()
	return again && s.d.cluster && ends && time.Until(at) < s.ttl/3
}

// note remembers whether a renewal was answered by some masters and not by others.
func (s *session) note(partial bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.partial = partial
}

func (s *session) waits(c *claim) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.state == waiting
}

// giveUp notes that claims are lost and returns them.
func (s *session) giveUp(claims []*claim) (lost []driver.Loss) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range claims {
		if !c.Leaving {
			c.end(gone)
			lost = append(lost, c.loss())
		}
	}
	return lost
}

// follow makes the requests that answers ask for. The long script looks for those who share and were not renewed. And the claims
// whose slot a cluster is moving just now are renewed one by one: it takes no script for keys of which some are here and some there.
func (r *renewal) follow(ctx context.Context, s *session, timeout time.Duration, replies []redisconn.Reply) []redisconn.Reply {
	var more renewal
	for i, about := range r.about {
		script := r.calls[i].Script
		switch {
		case len(about) > 1 && redisconn.Is(replies[i].Err, "TRYAGAIN"):
			for _, c := range about {
				call := s.holdCall
				if script == shareScript {
					call = s.lookCall
				}
				more.add(call, []*claim{c})
			}
			replies[i], r.about[i] = redisconn.Reply{}, nil
		case script == shareScript:
			numbers, _ := replies[i].Value.([]any)
			for _, n := range numbers {
				if n, _ := n.(int64); n > 0 && n <= int64(len(about)) {
					more.add(s.lookCall, about[n-1:n])
				}
			}
		}
	}
	if len(more.calls) == 0 {
		return replies
	}
	further, err := redisstore.Together(ctx, s.d.run, timeout, more.calls)
	if err != nil {
		further = make([]redisconn.Reply, len(more.calls))
		for i := range further {
			further[i].Err = err
		}
	}
	r.calls, r.about = append(r.calls, more.calls...), append(r.about, more.about...)
	return append(replies, further...)
}

// add adds a run of a script about claims.
func (r *renewal) add(call func([]*claim) redisconn.Call, about []*claim) {
	r.calls, r.about = append(r.calls, call(about)), append(r.about, about)
}

// standing returns the claims that hold alone, those that share, those that wait, and those that are lost, until they
// are released. s.mu is held.
func (s *session) standing() (alone, shared, waits []*claim, lost []driver.Loss) {
	for _, c := range s.claims {
		switch {
		case c.Leaving || c.state == unsent:
		case c.state >= gone:
			lost = append(lost, c.loss())
		case c.state == waiting:
			waits = append(waits, c)
		case c.exclusive():
			alone = append(alone, c)
		default:
			shared = append(shared, c)
		}
	}
	slices.SortFunc(shared, func(a, b *claim) int { return strings.Compare(a.Name, b.Name) })
	return alone, shared, waits, lost
}

// aged splits claims that hold alone: those whose counters are to be given more time are renewed by the long script, which does that,
// once in an eighth of the time that counters have. s.mu is held.
func (s *session) aged(alone []*claim) (young, old []*claim) {
	if s.d.options.KeepCounters < 0 {
		return alone, nil
	}
	now := time.Now()
	for _, c := range alone {
		if now.Sub(c.count) < s.d.options.KeepCounters/8 {
			young = append(young, c)
		} else {
			c.count = now
			old = append(old, c)
		}
	}
	return young, old
}

// holds adds the renewals of claims that hold.
func (r *renewal) holds(s *session, claims []*claim, call func([]*claim) redisconn.Call) {
	bySlot := map[int][]*claim{0: claims}
	if len(claims) > 0 && s.d.cluster {
		bySlot = map[int][]*claim{}
		for _, c := range claims {
			slot := redisconn.Slot(c.keys.name)
			bySlot[slot] = append(bySlot[slot], c)
		}
	}
	for _, group := range bySlot {
		for len(group) > 0 {
			some := group[:min(batch, len(group))]
			group = group[len(some):]
			r.add(call, some)
		}
	}
}

// holdCall is a run of the script that renews claims that hold alone.
func (s *session) holdCall(claims []*claim) redisconn.Call {
	call := redisconn.Call{
		Script: holdScript, Keys: make([]string, len(claims)), Args: make([]string, len(claims)+1), Again: redisconn.Idempotent,
	}
	call.Args[0] = s.ttlMS
	for i, c := range claims {
		call.Keys[i], call.Args[i+1] = c.keys.name, layout+c.ID
	}
	return call
}

// shareCall is a run of the script that renews claims that share, those of a name one after another.
func (s *session) shareCall(claims []*claim) redisconn.Call {
	call := redisconn.Call{Script: shareScript, Args: []string{s.ttlMS, s.keepMS}, Again: redisconn.Idempotent}
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
	return call
}

// lookCall is a run of the long script for one claim that stood in line.
func (s *session) lookCall(claims []*claim) redisconn.Call {
	s.mu.Lock()
	e := claims[0].ear
	s.mu.Unlock()
	call := s.lineCall(nil, claims[0], e, true)
	call.Again = redisconn.Idempotent // what stood in line before is not put there
	return call
}

// asks adds the questions for claims that wait. Subscriptions that must be made again may take patience only:
// everything else waits for them.
func (r *renewal) asks(ctx context.Context, patience time.Duration, s *session, claims []*claim) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r.ears = map[*claim]*ear{}
	for _, c := range claims {
		e, err := s.d.listen(ctx, c.Name)
		s.mu.Lock()
		waits := c.state == waiting
		if err == nil {
			c.ear = e
		}
		s.mu.Unlock()
		if err != nil && waits {
			continue // nobody could tell it; Wait meets the same error and says it
		}
		r.ears[c] = e
		r.add(s.lookCall, []*claim{c})
	}
}

// missing takes in which claims were not renewed.
func (s *session) missing(claims []*claim, v any) (lost []driver.Loss) {
	numbers, _ := v.([]any)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range numbers {
		n, _ := n.(int64)
		i := n/2 - 1
		if i < 0 || i >= int64(len(claims)) || claims[i].Leaving || claims[i].state != held {
			continue
		}
		c := claims[i]
		if n%2 == 1 {
			c.end(broken)
		} else {
			c.end(gone)
		}
		lost = append(lost, c.loss())
	}
	return lost
}

// asked takes in the state of a claim that waits, with e's channel, or shares, and returns it if it is lost.
func (s *session) asked(c *claim, e *ear, r lineReply) []driver.Loss {
	_ = s.settle(c, e, r) // a claim that stands in line fits there
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.Leaving && c.state >= gone {
		return []driver.Loss{c.loss()}
	}
	c.change.Give()
	return nil
}
