package shedlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// session is the claims that are renewed together. Nothing stands in the table for it.
type session struct {
	d            *Driver
	owner        driver.Owner
	ttl, timeout time.Duration

	mu     sync.Mutex
	claims sessions.Claims[*claim]
	closed bool
}

// Valid implements driver.Session: the TTL less what the table's times are rounded by and the drift between the database's clock and ours.
func (s *session) Valid() time.Duration {
	return s.ttl - s.ttl/100 - 2*s.d.unit - 2*time.Millisecond
}

// claim returns what is known of c, from now on at least its ID.
func (s *session) claim(c driver.Claim) (*claim, error) {
	if err := s.d.check(c); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, driver.ErrSessionLost
	}
	return s.claims.Of(c.ID, func() *claim { return &claim{Claim: c} }), nil
}

// Acquire implements driver.Session.
func (s *session) Acquire(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	c, err := s.claim(dc)
	if err != nil {
		return driver.Grant{}, err
	}
	return s.turn(ctx, c, false)
}

// Wait implements driver.Session: nobody is told, so it looks.
func (s *session) Wait(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	c, err := s.claim(dc)
	if err != nil {
		return driver.Grant{}, err
	}
	return driver.Poll(ctx, soonest, latest, func(ctx context.Context) (driver.Grant, error) { return s.turn(ctx, c, true) })
}

// turn asks for c, once the call before is over, and returns its state.
func (s *session) turn(ctx context.Context, c *claim, waits bool) (driver.Grant, error) {
	err := c.Fly(ctx, &s.mu, false, s.timeout, func(ctx context.Context) error { return s.ask(ctx, c, waits) })
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return driver.Grant{}, driver.ErrSessionLost
	case c.state == gone:
		return driver.Grant{}, driver.ErrGone
	case err != nil:
		if c.state == out && c.void.IsZero() && c.Landing() == nil {
			s.claims.Forget(c.ID, c) // nothing of it stands there
		}
		return driver.Grant{}, err
	case c.state == out:
		s.claims.Forget(c.ID, c)
	}
	return driver.Grant{Held: c.state == held, Holder: c.holder}, nil
}

// ask renews c where it is held, and else takes its row if that is free.
func (s *session) ask(ctx context.Context, c *claim, waits bool) error {
	s.mu.Lock()
	st, leaving := c.state, c.Leaving || s.closed
	s.mu.Unlock()
	end, _ := ctx.Deadline()
	var h *driver.Holder
	var err error
	switch {
	case leaving:
		return fmt.Errorf("shedlock: %w: the claim is being released", driver.ErrNotSent)
	case st == gone || st == held && waits:
		return nil
	case st == held:
		var stands map[string]bool
		if stands, err = s.extend(ctx, []*claim{c}); !stands[c.ID] {
			st = gone
		}
	default:
		st, h, err = s.enter(ctx, c, waits)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		c.state, c.holder = max(c.state, st), h
		return nil
	case unknown(err):
		c.void = end
	}
	return fmt.Errorf("shedlock: acquire %q: %w", c.Name, err)
}

// enter takes the name's row where it is free. Who has waited looks first: most looks find it held, and one that does not write is in nobody's
// way. A row that is free behind an attempt costs another one: somebody has come and gone, or the database's clock has leapt so that the
// attempt was void.
func (s *session) enter(ctx context.Context, c *claim, waits bool) (state, *driver.Holder, error) {
	by, fresh, denied := lockedBy(c.ID, s.owner), false, out
	if c.Queue {
		denied = waiting
	}
	for tried := range 4 {
		if tried > 0 || !waits {
			if took, err := s.d.take(ctx, c, by, s.ttl, fresh); err != nil || took {
				return held, nil, err
			}
		}
		rows, err := s.d.rows(ctx, s.d.named(c.Name))
		if err != nil {
			return out, nil, err
		}
		if fresh = len(rows) == 0; fresh {
			continue
		}
		r := rows[0]
		switch id, _ := r.mine(); {
		case r.name != c.Name:
			return out, nil, fmt.Errorf("%w: the table takes the name for %q, which stands there: want names that differ in more than case, accents and blanks at the end", driver.ErrRefused, r.name)
		case !r.live():
			continue
		case id == c.ID:
			return held, nil, nil
		}
		return denied, r.holder(), nil
	}
	return denied, nil, nil // to others, who come and go
}

// extend renews claims and returns the IDs of those that stand there. How many rows were changed tells mostly: it says too little where
// the same time stood there already, which some clients do not count.
func (s *session) extend(ctx context.Context, claims []*claim) (stands map[string]bool, err error) {
	stands = map[string]bool{}
	among := none
	if len(claims) > 0 {
		among = s.d.among(claims) + " and " + s.d.live()
		n, err := s.d.move(ctx, s.d.later(s.d.dialect.now, s.ttl), claims...)
		if err != nil {
			return nil, err
		}
		if n == int64(len(claims)) {
			for _, c := range claims {
				stands[c.ID] = true
			}
			return stands, nil
		}
	}
	rows, err := s.d.rows(ctx, among)
	for _, r := range rows {
		id, _ := r.mine()
		stands[id] = true
	}
	return stands, err
}

// Renew implements driver.Session.
func (s *session) Renew(ctx context.Context) (driver.Renewal, error) {
	var about, stuck []*claim
	r, had := driver.Renewal{Valid: s.Valid()}, map[*claim]bool{}
	s.mu.Lock()
	closed := s.closed
	for _, c := range s.claims {
		switch {
		case c.Leaving && !c.Left && c.Landing() == nil:
			stuck = append(stuck, c) // its Release had no answer, and perhaps nobody repeats it
		case c.Leaving:
		case c.state == gone:
			r.Lost = append(r.Lost, c.ID)
		case c.state == held || !c.void.IsZero(): // an answer that is lost may have been that it is held
			about, had[c] = append(about, c), c.state == held
		}
	}
	s.mu.Unlock()
	if closed {
		return driver.Renewal{}, driver.ErrSessionLost
	}
	for _, c := range stuck {
		go func() { _, _ = s.release(context.Background(), c) }() //nolint:contextcheck // it is not what the caller waits for
	}
	stands, err := s.extend(sessions.Within(ctx, s.timeout), about)
	if err != nil {
		return driver.Renewal{}, fmt.Errorf("shedlock: renew: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range about {
		switch {
		case c.Leaving:
		case stands[c.ID]:
			c.state = max(c.state, held)
		case had[c]:
			c.state, r.Lost = gone, append(r.Lost, c.ID)
		}
	}
	return r, nil
}

// Release implements driver.Session.
func (s *session) Release(ctx context.Context, dc driver.Claim) (bool, error) {
	if err := s.d.check(dc); err != nil {
		return false, err
	}
	s.mu.Lock()
	c := s.claims.Leaving(dc.ID, s.closed, func() *claim { return &claim{Claim: dc} })
	s.mu.Unlock()
	return s.release(ctx, c)
}

// release frees the claim's row, once. A request that is still under way could take it for nobody after that, until it is void: then it is
// freed once more.
func (s *session) release(ctx context.Context, c *claim) (bool, error) {
	return c.Release(ctx, &s.mu, false, s.timeout, func(ctx context.Context) error {
		n, err := s.d.move(ctx, s.d.dialect.now, c)
		if err != nil {
			return fmt.Errorf("shedlock: release %q: %w", c.Name, err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		c.Left, c.Was = true, n > 0
		s.claims.Forget(c.ID, c)
		if wait := time.Until(c.void); wait > 0 {
			time.AfterFunc(wait, func() { //nolint:contextcheck // long after the caller
				_, _ = s.d.move(sessions.Within(context.Background(), s.timeout), s.d.dialect.now, c)
			})
		}
		return nil
	})
}

// Close implements driver.Session.
func (s *session) Close(ctx context.Context) (err error) {
	if s.d.sessions.Closed() {
		return nil // with its driver
	}
	s.mu.Lock()
	s.closed = true
	all := s.claims.AllLeaving()
	s.mu.Unlock()
	for _, c := range all {
		c.Rest(ctx, &s.mu) // a request under way may take its row
	}
	if len(all) > 0 {
		_, err = s.d.move(sessions.Within(ctx, s.timeout), s.d.dialect.now, all...)
	}
	s.d.sessions.Remove(s)
	if err != nil {
		return fmt.Errorf("shedlock: close a session: %w", errors.Join(err, ctx.Err()))
	}
	return nil
}
