package broken

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// session is a session over memlock's, with what faults remember of its claims.
type session struct {
	driver.Session
	l    *layer
	spec driver.Spec

	mu      sync.Mutex
	claims  map[string]driver.Claim // those acquired and not released
	held    map[string]driver.Grant // as last answered
	marked  map[string]bool         // whatever the fault means by it
	started map[string]time.Time    // when first acquired
	renewed chan struct{}           // closed by the next Renew
	over    bool                    // Close was called
	counter atomic.Uint64
}

func (s *session) Valid() time.Duration {
	if s.l.fault.valid != nil {
		return s.l.fault.valid(s.Session.Valid())
	}
	if s.l.fault.validIn != nil {
		return s.l.fault.validIn(s, s.Session.Valid())
	}
	return s.Session.Valid()
}

func (s *session) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	c.Name = s.l.name(c.Name)
	do := s.acquire
	if f := s.l.fault.acquire; f != nil {
		do = func(ctx context.Context, c driver.Claim) (driver.Grant, error) { return f(s, ctx, c) }
	}
	g, err := do(ctx, c)
	s.note(c, g, err)
	return g, err
}

func (s *session) acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return s.Session.Acquire(ctx, c)
}

func (s *session) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	c.Name = s.l.name(c.Name)
	do := s.Session.Wait
	if f := s.l.fault.wait; f != nil {
		do = func(ctx context.Context, c driver.Claim) (driver.Grant, error) { return f(s, ctx, c) }
	}
	g, err := do(ctx, c)
	s.note(c, g, err)
	return g, err
}

// note remembers an answer.
func (s *session) note(c driver.Claim, g driver.Grant, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || !g.Held && !c.Queue {
		return
	}
	s.claims[c.ID], s.held[c.ID] = c, g
	if s.started[c.ID].IsZero() {
		s.started[c.ID] = time.Now()
	}
}

func (s *session) Release(ctx context.Context, c driver.Claim) (bool, error) {
	c.Name = s.l.name(c.Name)
	do := s.Session.Release
	if f := s.l.fault.release; f != nil {
		do = func(ctx context.Context, c driver.Claim) (bool, error) { return f(s, ctx, c) }
	}
	held, err := do(ctx, c)
	if err == nil {
		s.forget(c)
	}
	return held, err
}

func (s *session) forget(c driver.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.claims, c.ID)
	delete(s.held, c.ID)
}

func (s *session) Requeue(ctx context.Context, old, next driver.Claim) (g driver.Grant, held bool, err error) {
	old.Name, next.Name = s.l.name(old.Name), s.l.name(next.Name)
	if f := s.l.fault.requeue; f != nil {
		g, held, err = f(s, ctx, old, next)
	} else {
		g, held, err = s.Session.(driver.Requeuer).Requeue(ctx, old, next)
	}
	s.note(next, g, err)
	if err == nil {
		s.forget(old)
	}
	return g, held, err
}

func (s *session) Renew(ctx context.Context) (driver.Renewal, error) {
	s.mu.Lock()
	close(s.renewed)
	s.renewed = make(chan struct{})
	s.mu.Unlock()
	if f := s.l.fault.renew; f != nil {
		return f(s, ctx)
	}
	r, err := s.Session.Renew(ctx)
	if s.l.fault.valid != nil {
		r.Valid = s.l.fault.valid(r.Valid)
	}
	return r, err
}

func (s *session) Close(ctx context.Context) error {
	if f := s.l.fault.close; f != nil {
		return f(s, ctx)
	}
	return s.Session.Close(ctx)
}

func (s *session) Lost() <-chan driver.Loss {
	if s.l.fault.lost != nil {
		return s.l.fault.lost(s)
	}
	return s.Session.(driver.LossNotifier).Lost()
}

func (s *session) Nudge() <-chan struct{} {
	if s.l.fault.nudge != nil {
		return s.l.fault.nudge(s)
	}
	return s.Session.(driver.Nudger).Nudge()
}

// known returns what was last answered of a claim.
func (s *session) known(id string) driver.Grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[id]
}

// mark sets or clears the fault's mark of a claim and reports whether it was set.
func (s *session) mark(id string, to bool) (was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was = s.marked[id]
	s.marked[id] = to
	return was
}

func (s *session) isMarked(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.marked[id]
}

// all returns the claims that stand.
func (s *session) all() []driver.Claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	var cs []driver.Claim
	for _, c := range s.claims {
		cs = append(cs, c)
	}
	return cs
}

// inheritor is a session whose liveness is bound to files.
type inheritor struct{ *session }

func (h inheritor) Inherit() []*os.File { return h.l.fault.inherit(h.session) }

// has reports whether the claim is held in the store, noticed or not.
func (s *session) has(c driver.Claim) bool {
	h, _ := find(s.l.look(c.Name), driver.PublicID(c.ID))
	return h.Held
}

// isOver reports whether Close was called.
func (s *session) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// holds reports whether the session is known to hold anything.
func (s *session) holds() bool {
	for _, c := range s.all() {
		if s.known(c.ID).Held {
			return true
		}
	}
	return false
}

// dropOlder releases what has been held for one time-to-live.
func (s *session) dropOlder(ctx context.Context) {
	for _, c := range s.all() {
		s.mu.Lock()
		old := s.held[c.ID].Held && time.Since(s.started[c.ID]) >= s.Session.Valid()
		s.mu.Unlock()
		if old {
			_, _ = s.Session.Release(ctx, c) // a wire that fails is no part of the fault
		}
	}
}

// untilRenewed returns when the session is renewed or ctx ends.
func (s *session) untilRenewed(ctx context.Context) error {
	s.mu.Lock()
	renewed := s.renewed
	s.mu.Unlock()
	select {
	case <-renewed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
