package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redlock/internal/membership"
)

// batch is how many names one script renews.
const batch = 100

// Renew implements driver.Session. Claims that hold are renewed a hundred a script, those that wait
// ask for their state as in Acquire, everything on all masters at once. It is answered when a
// majority has renewed every claim that holds; until then the old validity stands.
func (s *session) Renew(ctx context.Context) (driver.Renewal, error) {
	f := newInflight(time.Now())
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return driver.Renewal{}, driver.ErrSessionLost
	}
	holds, waits := s.live()
	s.mu.Unlock()

	failed := map[*claim][]error{}
	for _, c := range waits {
		failed[c] = s.subscribeAll(ctx, c)
	}
	until := time.Now().Add(s.timeout)
	if end, ok := ctx.Deadline(); ok && end.Before(until) {
		until = end
	}
	s.mu.Lock()
	for _, c := range waits {
		if c.state < held {
			c.need = f.since
		}
	}
	f.propose(s.d, "", 0)
	for _, n := range s.d.nodes {
		before := f.out
		s.hold(n, holds, f, until)
		for _, c := range waits {
			if failed[c][n.i] == nil && !c.leaving && c.state < gone {
				s.ask(c, n, f)
			}
		}
		if f.out == before {
			s.ping(n, f, until)
		}
	}
	s.mu.Unlock()
	err := s.await(ctx, f, func() bool {
		return f.out == 0 || f.answered() >= s.d.quorum && s.renewed(f.since, holds) && s.heardOf(f.since, waits)
	})
	if err != nil {
		return driver.Renewal{}, err
	}
	if len(waits) > 0 {
		s.linger(ctx, f, f.half())
	}
	return s.conclude(ctx, f, holds, waits)
}

// renewed reports whether every claim that holds was renewed by a majority, or is lost.
func (s *session) renewed(since time.Time, claims []*claim) bool {
	for _, c := range claims {
		if !c.leaving && c.state == held && c.good(since, s.Valid()) < s.d.quorum && c.has() >= s.d.quorum {
			return false
		}
	}
	return true
}

// heardOf reports whether a majority has said what every claim that waits has.
func (s *session) heardOf(since time.Time, claims []*claim) bool {
	for _, c := range claims {
		n := 0
		for i := range c.nodes {
			if !c.nodes[i].known.Before(since) || c.nodes[i].refused != nil {
				n++
			}
		}
		if n < s.d.quorum && !c.leaving && c.state < gone {
			return false
		}
	}
	return true
}

// conclude says what became of the claims. One that was granted meanwhile, by masters some of which
// did not hear of this renewal, is renewed on its own.
func (s *session) conclude(ctx context.Context, f *inflight, holds, waits []*claim) (driver.Renewal, error) {
	s.mu.Lock()
	late := newInflight(f.since)
	for _, c := range waits {
		if s.renewed(f.since, []*claim{c}) {
			continue
		}
		for i := range c.nodes {
			if ns := &c.nodes[i]; ns.has && !ns.raising && !ns.good(c.token, f.since, s.Valid()) {
				s.confirm(c, s.d.nodes[i], late)
			}
		}
	}
	s.mu.Unlock()
	claims := append(holds, waits...)
	if err := s.await(ctx, late, func() bool { return late.out == 0 || s.renewed(f.since, claims) }); err != nil {
		return driver.Renewal{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.answered() < s.d.quorum && f.failed != 0 {
		return driver.Renewal{}, fmt.Errorf("redlock: renew: %w", f.unavailable(s.d))
	}
	for _, c := range claims {
		if !c.leaving && c.state == held && c.has() < s.d.quorum {
			c.end(gone)
		}
	}
	for _, c := range claims {
		if !s.renewed(f.since, []*claim{c}) {
			text := fmt.Sprintf("redlock: renew: %d of %d masters have renewed %q, want %d or more that had it before and vote",
				c.good(f.since, s.Valid()), len(s.d.nodes), c.Name, s.d.quorum)
			if f.err != nil {
				text += ": " + f.err.Error()
			}
			return driver.Renewal{}, errors.New(text)
		}
	}
	s.d.tell()
	var lost []driver.Loss
	for _, c := range s.claims {
		if !c.leaving && c.state >= gone {
			lost = append(lost, c.loss())
		}
	}
	return driver.Renewal{Valid: s.Valid(), Lost: lost}, nil
}

// hold renews claims on one master, and takes it in for those that are held without it: as one that
// has lost its memory, or one that somebody else had. s.mu is held.
//
// A master that was taken in counts from the next renewal on, if this one succeeds without it, and
// not while it waits for its vote: see claim.renewed and docs/models/renew.pml. Only a claim that
// is known not to have the master takes it in. So where a key has gone unnoticed that is heard
// first, and an answer that is lost hides no gap.
func (s *session) hold(n *node, claims []*claim, f *inflight, until time.Time) {
	var all, lacking []*claim
	for _, c := range claims {
		if c.nodes[n.i].has {
			all = append(all, c)
		} else {
			lacking = append(lacking, c)
		}
	}
	has := len(all)
	all = append(all, lacking...)
	for ; len(all) > 0; has -= batch {
		some := all[:min(batch, len(all))]
		all = all[len(some):]
		known := max(0, min(has, len(some))) // so many are only renewed
		joins := func(c *claim) bool { return !c.nodes[n.i].joined.IsZero() }
		f.give(n)
		n.give(order{
			call: s.holdCall(n, some, known), since: f.since, until: until, verify: slices.ContainsFunc(some[:known], joins),
			done: func(n *node, o *order, v any, err error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				for _, c := range some[known:] {
					ns := &c.nodes[n.i]
					ns.failed(err)
					ns.doubt = ns.doubt || o.resent
				}
				reply, _ := v.([]any)
				if err != nil || len(reply) == 0 {
					f.answer(n, err)
				} else {
					s.onRenewed(n, o, some, known, reply, f)
				}
				f.check()
			},
		})
	}
}

// holdCall is a run of the script hold at n. The master may be taken in for those claims that
// follow the known.
func (s *session) holdCall(n *node, claims []*claim, known int) redisconn.Call {
	keys, args := make([]string, 0, len(claims)+2), make([]string, 0, len(claims)+3)
	keys, args = append(keys, membership.VoteKey, membership.HighKey), append(args, s.ttlMS, n.member.Vote(), strconv.Itoa(len(claims)))
	for i, c := range claims {
		keys = append(keys, c.keys.name)
		if i < known {
			args = append(args, layout+c.ID)
		} else {
			args = append(args, c.value(n.channel()))
		}
	}
	for _, c := range claims[known:] {
		keys = append(keys, c.keys.counter, c.keys.line, c.keys.claims)
		args = append(args, strconv.FormatInt(c.token, 10), strconv.FormatInt(max(c.token, c.nodes[n.i].counter), 10))
	}
	return redisconn.Call{Script: holdScript, Keys: keys, Args: args}
}

// onRenewed notes which claims a master has renewed, and for which of those that follow the known
// it was taken in. s.mu is held.
func (s *session) onRenewed(n *node, o *order, claims []*claim, known int, reply []any, f *inflight) {
	number := func(i int) int64 { x, _ := reply[i].(int64); return x }
	waits := number(0) == 0
	switch {
	case waits:
		f.answer(n, n.member.Refused())
		f.refused |= 1 << n.i
	default:
		f.answer(n, nil)
		if o.verify && !o.verified {
			s.d.members.Recheck() // it has its vote again, or has restarted: whichever it is decides whether it counts
		}
	}
	lacks := map[int64]int64{} // counters
	for i := 1; i+1 < len(reply); i += 2 {
		m := number(i)
		lacks[m/2-1] = number(i + 1)
		if i := m/2 - 1; m%2 == 1 && i >= 0 && i < int64(len(claims)) && !claims[i].leaving {
			claims[i].end(broken)
		}
	}
	for i, c := range claims {
		ns := &c.nodes[n.i]
		counter, missing := lacks[int64(i)]
		switch {
		case missing && i < known:
			ns.has = false
		case missing:
			ns.counter = max(ns.counter, counter) // for the next renewal; it may be somebody else's
		case i >= known && !ns.has:
			ns.has, ns.joined, ns.counter = true, o.since, max(ns.counter, c.token)
		case ns.has && waits:
			ns.joined = o.since
		case ns.has:
			c.renewed(ns, o.since, o.verified, s.Valid())
		}
		if o.since.After(c.kept) && c.good(o.since, s.Valid()) >= s.d.quorum {
			c.kept = o.since
		}
	}
}

// ping asks a master only whether it is there.
func (s *session) ping(n *node, f *inflight, until time.Time) {
	f.give(n)
	n.give(order{
		call: membership.Look(), since: f.since, until: until,
		done: func(n *node, _ *order, _ any, err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			f.answer(n, err)
			f.check()
		},
	})
}
