package redislock

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

// batch is how many names one script renews.
const batch = 100

// renewal is one Renew: the runs of scripts and the claims that each is about.
type renewal struct {
	calls []redisconn.Call
	about [][]*claim
}

// Renew implements driver.Session. Claims that hold alone are renewed a hundred a script, on a cluster by slot; claims
// that wait or share ask for their state as in Acquire. Everything goes out together. One try takes at most half of what
// is left of ctx, so that a connection that has died unnoticed does not use up the only one.
func (s *session) Renew(ctx context.Context) (driver.Renewal, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return driver.Renewal{}, driver.ErrSessionLost
	}
	alone, others, lost := s.standing()
	s.mu.Unlock()

	timeout := s.timeout
	if end, ok := ctx.Deadline(); ok {
		timeout = max(min(timeout, time.Until(end)/2), time.Millisecond)
	}
	var r renewal
	r.holds(s, alone)
	r.asks(ctx, s, others)
	if len(r.calls) == 0 {
		if err := s.d.contact(limit{ctx, time.Now().Add(timeout)}); err != nil {
			return driver.Renewal{}, err
		}
		return driver.Renewal{Valid: s.Valid(), Lost: lost}, nil
	}
	replies, err := s.d.together(ctx, timeout, r.calls)
	if err != nil {
		return driver.Renewal{}, fmt.Errorf("redislock: renew: %w", err)
	}
	for i, reply := range replies {
		if reply.Err != nil {
			return driver.Renewal{}, fmt.Errorf("redislock: renew: %w", reply.Err)
		}
		if r.calls[i].Script == holdScript {
			lost = append(lost, s.missing(r.about[i], reply.Value)...)
			continue
		}
		answer, err := parseLineReply(reply.Value)
		if err != nil {
			return driver.Renewal{}, fmt.Errorf("redislock: renew: %w", err)
		}
		if id := s.asked(r.about[i][0], answer); id != "" {
			lost = append(lost, id)
		}
	}
	return driver.Renewal{Valid: s.Valid(), Lost: lost}, nil
}

// standing returns the claims that hold alone, those that wait or share, and the IDs of those that are lost, until they
// are released. s.mu is held.
func (s *session) standing() (alone, others []*claim, lost []string) {
	for _, c := range s.claims {
		switch {
		case c.leaving || c.state == unsent:
		case c.state >= gone:
			lost = append(lost, c.ID)
		case c.state == held && c.exclusive():
			alone = append(alone, c)
		default:
			others = append(others, c)
		}
	}
	return alone, others, lost
}

// holds adds the renewals of claims that hold alone.
func (r *renewal) holds(s *session, claims []*claim) {
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
			call := redisconn.Call{Script: holdScript, Keys: make([]string, len(some)), Args: make([]string, len(some)+1)}
			call.Args[0] = s.ttlMS
			for i, c := range some {
				call.Keys[i], call.Args[i+1] = c.keys.name, layout+c.ID
			}
			r.calls, r.about = append(r.calls, call), append(r.about, some)
		}
	}
}

// asks adds the questions for claims that wait or share.
func (r *renewal) asks(ctx context.Context, s *session, claims []*claim) {
	for _, c := range claims {
		var e *ear
		if c.Queue {
			var err error
			if e, err = s.d.listen(ctx, c.Name); err != nil {
				continue // Wait meets the same error and says it; what is held is renewed all the same
			}
			s.mu.Lock()
			c.ear = e
			s.mu.Unlock()
		}
		r.calls, r.about = append(r.calls, s.lineCall(nil, c, e, true, false)), append(r.about, []*claim{c})
	}
}

// missing takes in which claims were not renewed.
func (s *session) missing(claims []*claim, v any) (lost []string) {
	numbers, _ := v.([]any)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range numbers {
		n, _ := n.(int64)
		i := n/2 - 1
		if i < 0 || i >= int64(len(claims)) || claims[i].leaving || claims[i].state != held {
			continue
		}
		c := claims[i]
		if n%2 == 1 {
			c.end(broken)
		} else {
			c.end(gone)
		}
		lost = append(lost, c.ID)
	}
	return lost
}

// asked takes in the state of a claim that waits or shares, and returns its ID if it is lost.
func (s *session) asked(c *claim, r lineReply) string {
	_ = s.settle(c, r) // a claim that stands in line fits there
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.leaving && c.state >= gone {
		return c.ID
	}
	c.changed()
	return ""
}
