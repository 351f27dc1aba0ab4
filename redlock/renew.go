package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

// batch is how many names one script renews.
const batch = 100

// Renew implements driver.Session. Claims that hold are renewed a hundred a script, those that wait ask for their state as
// in Acquire, everything on all masters at once. It is answered when a majority has renewed every claim that holds; until
// then the old validity stands.
func (s *session) Renew(ctx context.Context) (driver.Renewal, error) {
	f := newFlight(time.Now())
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return driver.Renewal{}, driver.ErrSessionLost
	}
	holds, waits := s.standing()
	s.mu.Unlock()

	deaf := map[*claim][]error{}
	for _, c := range waits {
		deaf[c] = s.listening(ctx, c)
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
			if deaf[c][n.i] == nil && !c.leaving && c.state < gone {
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
	return s.judge(ctx, f, holds, waits)
}

// standing returns the claims that hold and those that wait. s.mu is held.
func (s *session) standing() (holds, waits []*claim) {
	for _, c := range s.claims {
		switch {
		case c.leaving || !c.begun:
		case c.state == held:
			holds = append(holds, c)
		case c.state == waiting:
			waits = append(waits, c)
		}
	}
	return holds, waits
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
		for i := range c.spots {
			if !c.spots[i].known.Before(since) || c.spots[i].refused != nil {
				n++
			}
		}
		if n < s.d.quorum && !c.leaving && c.state < gone {
			return false
		}
	}
	return true
}

// judge says what became of the claims. One that was granted meanwhile, by masters some of which did not hear of this
// renewal, is renewed on its own.
func (s *session) judge(ctx context.Context, f *flight, holds, waits []*claim) (driver.Renewal, error) {
	s.mu.Lock()
	late := newFlight(f.since)
	for _, c := range waits {
		if s.renewed(f.since, []*claim{c}) {
			continue
		}
		for i := range c.spots {
			if sp := &c.spots[i]; sp.has && !sp.raising && !sp.good(c.token, f.since, s.Valid()) {
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
		return driver.Renewal{}, fmt.Errorf("redlock: renew: %w", s.d.unavailable(f))
	}
	for _, c := range claims {
		if !c.leaving && c.state == held && c.has() < s.d.quorum {
			c.end(gone)
		}
	}
	if !s.renewed(f.since, claims) {
		if f.err == nil {
			f.err = errors.New("a claim was not renewed by a majority")
		}
		return driver.Renewal{}, fmt.Errorf("redlock: renew: %w", s.d.unavailable(f))
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

// hold renews claims on one master. s.mu is held.
func (s *session) hold(n *node, claims []*claim, f *flight, until time.Time) {
	var mine []*claim
	for _, c := range claims {
		if c.spots[n.i].has {
			mine = append(mine, c)
		}
	}
	for len(mine) > 0 {
		some := mine[:min(batch, len(mine))]
		mine = mine[len(some):]
		call := redisconn.Call{Script: holdScript, Keys: make([]string, len(some)+1), Args: make([]string, len(some)+2)}
		call.Keys[0], call.Args[0], call.Args[1] = voteKey, s.ttlMS, n.print()
		for i, c := range some {
			call.Keys[i+1], call.Args[i+2] = c.keys.name, layout+c.ID
		}
		f.give(n)
		n.give(order{call: call, since: f.since, until: until, done: func(n *node, o *order, v any, err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			f.answer(n, err)
			if missing, ok := v.([]any); err == nil && ok {
				s.held(n, some, missing, o.since)
			}
			f.check()
		}})
	}
}

// held takes in which claims a master has renewed. s.mu is held.
func (s *session) held(n *node, claims []*claim, missing []any, since time.Time) {
	lacks := map[int64]bool{}
	for _, m := range missing {
		m, _ := m.(int64)
		lacks[m/2-1] = true
		if i := m/2 - 1; m%2 == 1 && i >= 0 && i < int64(len(claims)) && !claims[i].leaving {
			claims[i].end(broken)
		}
	}
	for i, c := range claims {
		sp := &c.spots[n.i]
		if lacks[int64(i)] {
			sp.has = false
		} else if sp.has && since.After(sp.from) {
			sp.from = since
		}
	}
}

// ping asks a master only whether it is there.
func (s *session) ping(n *node, f *flight, until time.Time) {
	f.give(n)
	n.give(order{
		call: redisconn.Call{Script: memberScript, Keys: memberKeys, Args: []string{"look"}}, since: f.since, until: until,
		done: func(n *node, _ *order, _ any, err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			f.answer(n, err)
			f.check()
		},
	})
}
