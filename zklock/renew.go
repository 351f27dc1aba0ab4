package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/zk"
)

// Renew implements driver.Session: a majority answers, so that neither a server that has lost the
// leader renews anything, nor a leader that was voted out and does not know it yet. Every change
// that was made before is told before it is answered.
func (s *session) Renew(ctx context.Context) (driver.Renewal, error) {
	s.mu.Lock()
	if s.over() {
		s.mu.Unlock()
		return driver.Renewal{}, driver.ErrSessionLost
	}
	var stuck []*claim
	for _, c := range s.claims {
		if c.Leaving && !c.Left && c.Landing() == nil {
			stuck = append(stuck, c) // its Release had no answer, and perhaps nobody repeats it
		}
		if c.stale {
			s.recheck(c)
		}
	}
	s.mu.Unlock()
	for _, c := range stuck {
		go func() { _, _ = s.release(s.ctx, c) }()
	}
	rctx, cancel := context.WithTimeout(ctx, s.Valid())
	defer cancel()
	started, err := s.confirm(rctx)
	for errors.Is(err, zk.ErrUnanswered) && rctx.Err() == nil {
		started, err = s.confirm(rctx) // over another connection
	}
	if err != nil {
		return driver.Renewal{}, fmt.Errorf("zklock: renew: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over() {
		return driver.Renewal{}, driver.ErrSessionLost
	}
	// The leader certainly knows of an earlier request; of this one the follower may tell it only
	// with its next ping.
	r := driver.Renewal{Valid: min(s.Valid(), max(s.client.Timeout()-started.Sub(s.contact), s.client.Timeout()/3))}
	s.contact = started
	for _, c := range s.claims {
		if c.state >= broken && !c.Leaving {
			r.Lost = append(r.Lost, c.loss())
		}
	}
	return r, nil
}

// confirm makes a change, of nothing, that takes a majority, and reads the nodes that are not
// watched. It returns when it began. A Sync would not do: a leader answers it alone, for some time
// also when the others follow another leader.
func (s *session) confirm(ctx context.Context) (started time.Time, err error) {
	started = time.Now()
	call := zk.Multi(zk.Check(s.root(), -1))
	if err = s.check(ctx, call); err == nil && call.Code != zk.NoNode && call.Code != zk.NoAuth { // these, too, are answers of a majority
		err = call.Err
	}
	return started, err
}
