package redissonlock

import (
	"context"
	"errors"
	"fmt"
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
	seen  []uint64 // the turn of the room of a claim that waits
}

func (r *renewal) add(call redisconn.Call, seen uint64, about ...*claim) {
	r.calls, r.about, r.seen = append(r.calls, call), append(r.about, about), append(r.seen, seen)
}

// Renew implements driver.Session. What is held is renewed as Redisson's watchdog does it, a hundred a script, on a Cluster
// by slot; what waits asks, so that a message that was lost, or that another program never sent, costs a renewal's time
// at most; and what was released without an answer is released again. Everything goes out together. One try takes at most
// half of what is left of ctx, so that a connection that has died unnoticed does not use up the only one.
func (s *session) Renew(ctx context.Context) (driver.Renewal, error) {
	s.d.mu.Lock()
	if s.closed {
		s.d.mu.Unlock()
		return driver.Renewal{}, driver.ErrSessionLost
	}
	r, lost := s.renewal()
	s.d.mu.Unlock()

	timeout := s.timeout
	if end, ok := ctx.Deadline(); ok {
		timeout = max(min(timeout, time.Until(end)/2), time.Millisecond)
	}
	if len(r.calls) == 0 {
		if err := redisstore.Reach(sessions.Within(ctx, timeout), s.d.conn); err != nil {
			return driver.Renewal{}, fmt.Errorf("redissonlock: renew: %w", err)
		}
		return driver.Renewal{Valid: s.Valid(), Lost: lost}, nil
	}
	replies, err := redisstore.Together(ctx, s.d.run, timeout, r.calls)
	for i, reply := range replies {
		if c := r.about[i][0]; errors.Is(reply.Err, driver.ErrRefused) && r.calls[i].Script == takeScript {
			s.stir(c) // Wait asks, and says it
			continue
		}
		if err == nil {
			err = reply.Err
		}
		if reply.Err == nil {
			lost = append(lost, s.renewed(&r, i, reply.Value)...)
		}
	}
	if err != nil {
		return driver.Renewal{}, fmt.Errorf("redissonlock: renew: %w", err)
	}
	return driver.Renewal{Valid: s.Valid(), Lost: lost}, nil
}

// renewal makes the calls, and returns the claims that are lost, until they are released. d.mu is held.
func (s *session) renewal() (r renewal, lost []driver.Loss) {
	holds := map[int][]*claim{} // by slot
	for _, c := range s.claims {
		switch {
		case c.Leaving:
			if c.Landing() == nil && !c.Left {
				r.add(s.leaveCall(c), 0, c)
			}
		case c.state >= gone:
			lost = append(lost, c.loss())
		case c.state == held:
			slot := 0
			if s.d.cluster {
				slot = redisconn.Slot(c.Name)
			}
			holds[slot] = append(holds[slot], c)
		case c.state == waiting:
			r.add(s.takeCall(c), c.room.turn, c)
		}
	}
	for _, claims := range holds {
		for len(claims) > 0 {
			some := claims[:min(batch, len(claims))]
			claims = claims[len(some):]
			call := redisconn.Call{Script: holdScript, Args: []string{s.ttlMS, s.keepMS}, Again: redisconn.Idempotent}
			for _, c := range some {
				call.Keys = append(call.Keys, c.keys.name, c.keys.notes, c.keys.ownTime(c.Kind, c.field))
				call.Args = append(call.Args, c.field)
			}
			r.add(call, 0, some...)
		}
	}
	return r, lost
}

// renewed takes in the answer to one call, and returns the claims that it shows to be lost.
func (s *session) renewed(r *renewal, i int, v any) []driver.Loss {
	claims := r.about[i]
	switch r.calls[i].Script {
	case holdScript:
		return s.missing(claims, v)
	case leaveScript:
		s.gone(claims[0], v == int64(1))
		return nil
	}
	c := claims[0]
	a, err := parseAnswer(v)
	if err == nil {
		err = s.settle(c, a, r.seen[i])
	}
	if errors.Is(err, driver.ErrRefused) {
		s.stir(c) // Wait asks, and says it
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if !c.Leaving && c.state >= gone {
		return []driver.Loss{c.loss()}
	}
	return nil
}

// stir has a claim that waits ask for its state.
func (s *session) stir(c *claim) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if c.room != nil {
		c.room.stir()
	}
}

// missing takes in which claims were not renewed.
func (s *session) missing(claims []*claim, v any) (lost []driver.Loss) {
	numbers, _ := v.([]any)
	now := time.Now()
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	for _, n := range numbers {
		n, _ := n.(int64)
		i := n/2 - 1
		if i < 0 || i >= int64(len(claims)) || claims[i].Leaving || claims[i].state != held {
			continue
		}
		if n%2 == 1 {
			claims[i].end(broken, now)
		} else {
			claims[i].end(gone, now)
		}
		lost = append(lost, claims[i].loss())
	}
	return lost
}
