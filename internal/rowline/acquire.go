package rowline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Acquire implements driver.Session.
func (s *Session) Acquire(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, fmt.Errorf("%s: %w: %w", s.d.Package, driver.ErrNotSent, err)
	}
	c, err := s.claim(dc, false)
	if err != nil {
		return driver.Grant{}, err
	}
	return s.answer(c, s.ask(ctx, c, true))
}

// ask makes a step in which c joins its line or, if it has joined, is found there. If renew is true
// a claim that is found renews the session.
func (s *Session) ask(ctx context.Context, c *Claim, renew bool) error {
	return c.Fly(ctx, &s.mu, true, s.timeout, func(ctx context.Context) error {
		_, err := s.step(ctx, nil, c, renew)
		return err
	})
}

// answer returns the grant of a claim, or why there is none. A claim that is certainly not in line
// is forgotten.
func (s *Session) answer(c *Claim, err error) (driver.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.lost:
		return driver.Grant{}, driver.ErrSessionLost
	case c.state == Gone:
		return driver.Grant{}, driver.ErrGone
	case c.state == Broken:
		return driver.Grant{}, driver.ErrBroken
	case err != nil:
		if c.state == Out && c.void.IsZero() && certain(err) && c.Landing() == nil {
			s.forget(c)
		}
		return driver.Grant{}, err
	case c.state == Out:
		s.forget(c)
	}
	return c.grant, nil
}

// certain reports whether a request that failed has changed nothing.
func certain(err error) bool {
	return errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused)
}

// step makes one step of a line, in which old is removed and c joins or is found; either may be
// nil. It reports whether old was held.
func (s *Session) step(ctx context.Context, old, c *Claim, renew bool) (was bool, err error) {
	st := Step{Session: s.id, Renew: renew}
	if old != nil {
		st.Name, st.Old = old.Name, old.ID
	}
	s.mu.Lock()
	if c != nil {
		if c.Leaving || s.lost {
			s.mu.Unlock()
			return false, fmt.Errorf("%s: %w: the claim is being released", s.d.Package, driver.ErrNotSent)
		}
		st.Name, st.New, st.Again, st.Held = c.Name, &c.Claim, c.state != Out, c.state > Waiting
		if c.Queue && s.d.Notifier != nil { // it may be granted before the answer is read, and before Wait
			c.asked = s.d.Notifier.Subscribe(c)
		}
	}
	// The request is void before its caller stops waiting for the answer.
	started, ask := time.Now(), s.d.Store.Step
	if st.Deadline = s.clock + (started.Sub(s.at) + s.timeout*3/4).Microseconds(); c == nil && old.state == Waiting {
		ask = s.d.batch.release // others may give up, too
	}
	s.mu.Unlock()
	a, err := ask(ctx, st, s.timeout/2)
	s.mu.Lock()
	defer s.mu.Unlock()
	if c != nil && (a.Twice || err != nil && !certain(err)) {
		c.void = started.Add(s.timeout)
	}
	if err != nil {
		if old != nil {
			old.Unsure = true
		}
		return false, fmt.Errorf("%s: %w", s.d.Package, err)
	}
	if old != nil && a.Twice && !a.Was && old.state == Held && !old.Unsure {
		// If the second attempt had found the claim, it would have removed it. That it has not does
		// not show whether the first one did.
		old.Unsure = true
		return false, fmt.Errorf("%s: there was no answer, and when asked again the server has the claim no more", s.d.Package)
	}
	if c == nil || c.Leaving {
		return a.Was, nil
	}
	switch a.State {
	case Held:
		c.passed = s.d.Lineless && c.state <= Waiting && s.began.After(started)
		c.admit(a.Fence)
	case Waiting:
		if c.state <= Waiting {
			c.state, c.grant.Holder = Waiting, a.Holder
			c.schedule(a)
		}
	case Out:
		c.grant.Holder = a.Holder
	case Broken, Gone:
		c.end(a.State)
	case Misfit:
		return a.Was, fmt.Errorf("%s: name %q: %w: permits of a semaphore never share a name with other claims", s.d.Package, c.Name, driver.ErrName)
	case Over:
		return a.Was, s.expired()
	case Void:
		s.at, s.clock = started, a.Clock // it was set
		return a.Was, fmt.Errorf("%s: %w: the request was late, or the database's clock has leapt", s.d.Package, driver.ErrNotSent)
	}
	return a.Was, nil
}

// Release implements driver.Session.
func (s *Session) Release(ctx context.Context, dc driver.Claim) (bool, error) {
	c, err := s.claim(dc, true)
	if err != nil {
		return false, err
	}
	return s.release(ctx, c)
}

// release removes the claim from its line, once.
func (s *Session) release(ctx context.Context, c *Claim) (bool, error) {
	return c.Release(ctx, &s.mu, true, s.timeout, func(ctx context.Context) error {
		was, err := s.step(ctx, c, nil, false)
		if err != nil {
			return fmt.Errorf("release %q: %w", c.Name, err)
		}
		s.released(c, was)
		return nil
	})
}

// released handles a release that was answered. If a request of the claim may still be executed,
// the claim is released again when that request is void.
func (s *Session) released(c *Claim, was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Left, c.Was = true, was
	c.end(Gone)
	s.forget(c)
	if wait := time.Until(c.void); wait > 0 {
		time.AfterFunc(wait, func() {
			ctx, cancel := context.WithTimeout(s.d.ctx, s.timeout)
			defer cancel()
			_, _ = s.step(ctx, c, nil, false) // else the session's end removes it
		})
	}
}

// Requeue implements driver.Requeuer with one request.
func (s *Session) Requeue(ctx context.Context, oldClaim, nextClaim driver.Claim) (driver.Grant, bool, error) {
	next, err := s.claim(nextClaim, false)
	if err != nil {
		return driver.Grant{}, false, err
	}
	old, err := s.claim(oldClaim, true)
	if err != nil {
		return driver.Grant{}, false, err
	}
	was := false
	err = old.Fly(ctx, &s.mu, true, s.timeout, func(ctx context.Context) error {
		return next.Fly(ctx, &s.mu, true, s.timeout, func(ctx context.Context) (err error) {
			if was, err = s.step(ctx, old, next, true); err == nil {
				s.released(old, was)
			}
			return err
		})
	})
	if err != nil {
		return driver.Grant{}, false, err
	}
	g, err := s.answer(next, nil)
	return g, was, err
}
