package rowline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Renew implements driver.Session: one request for the session and for the state of all its claims.
func (s *Session) Renew(ctx context.Context) (driver.Renewal, error) {
	s.mu.Lock()
	if s.closed || s.lost {
		s.mu.Unlock()
		return driver.Renewal{}, driver.ErrSessionLost
	}
	var stuck []*Claim
	var known []Known
	var lost []driver.Loss
	for id, c := range s.claims {
		switch {
		case c.Leaving && !c.Left && c.Landing() == nil:
			stuck = append(stuck, c) // its Release had no answer, and may not be repeated
		case c.Leaving || c.state == Out:
		case c.state >= Broken:
			lost = append(lost, c.loss())
		default:
			known = append(known, Known{ID: id, Name: c.Name, Held: c.state == Held})
		}
	}
	started := time.Now()
	s.began = started // under the same lock as the state of the claims
	s.mu.Unlock()
	for _, c := range stuck {
		go func() { _, _ = s.release(s.d.ctx, c) }()
	}

	timeout := s.timeout
	if end, ok := ctx.Deadline(); ok {
		timeout = max(min(timeout, time.Until(end)), time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	clock, changed, err := s.d.Store.Renew(ctx, s.id, known, timeout/2)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case errors.Is(err, driver.ErrSessionLost):
		return driver.Renewal{}, s.expired()
	case err != nil:
		return driver.Renewal{}, fmt.Errorf("%s: renew: %w", s.d.Package, err)
	case clock != 0 && started.After(s.at):
		s.at, s.clock = started, clock
	}
	for id, a := range changed {
		c := s.claims[id]
		switch {
		case c == nil || c.Leaving:
		case a.State == Waiting:
			c.schedule(a)
		case a.State == Held:
			c.admit(a.Fence)
		default:
			c.end(a.State)
			lost = append(lost, c.loss())
		}
	}
	return driver.Renewal{Valid: s.Valid(), Lost: lost}, nil
}

// Close implements driver.Session: one request removes the claims from all lines and ends the
// session.
func (s *Session) Close(ctx context.Context) error {
	if s.d.all.Closed() {
		return nil // its driver has closed it
	}
	s.mu.Lock()
	s.closed = true
	all := s.claims.AllLeaving()
	s.mu.Unlock()
	names := make([]string, 0, len(all))
	for _, c := range all {
		c.Rest(ctx, &s.mu) // a request in flight may put it into the line
		names = append(names, c.Name)
	}
	slices.Sort(names)
	ctx, cancel := context.WithTimeout(ctx, s.d.Timeout)
	defer cancel()
	err := s.d.Store.Finish(ctx, s.id, slices.Compact(names))
	s.mu.Lock()
	for _, c := range all {
		c.Left = c.Left || err == nil
		c.end(Gone)
		s.forget(c)
	}
	s.mu.Unlock()
	s.d.all.Remove(s)
	if err != nil {
		return fmt.Errorf("%s: close a session: %w", s.d.Package, err)
	}
	return nil
}
