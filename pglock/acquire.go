package pglock

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Acquire implements driver.Session.
func (s *session) Acquire(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, fmt.Errorf("pglock: %w: %w", driver.ErrNotSent, err)
	}
	c, err := s.claim(dc)
	if err != nil {
		return driver.Grant{}, err
	}
	return s.answer(c, s.ask(ctx, c, true))
}

// ask has c join its line, or finds it there, and then renews the session or only looks.
func (s *session) ask(ctx context.Context, c *claim, renew bool) error {
	return s.fly(ctx, c, func(ctx context.Context) error {
		_, err := s.turn(ctx, nil, c, renew)
		return err
	})
}

// answer is the claim's state, unless err says that nothing is known.
func (s *session) answer(c *claim, err error) (driver.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.lost:
		return driver.Grant{}, driver.ErrSessionLost
	case c.state == gone:
		return driver.Grant{}, driver.ErrGone
	case c.state == broken:
		return driver.Grant{}, driver.ErrBroken
	case err != nil:
		if c.state == out && c.void.IsZero() && (errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused)) && c.Landing() == nil {
			s.forget(c)
		}
		return driver.Grant{}, err
	case c.state == out:
		s.forget(c)
	}
	return c.grant, nil
}

// octets are bytes as the server reads them.
func octets(s string) []byte { return hex.AppendEncode([]byte(`\x`), []byte(s)) }

func decimal(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

// turn is one step of a line, in which old leaves and c joins or is found; either may be nil. It reports whether old was held.
func (s *session) turn(ctx context.Context, old, c *claim, renew bool) (was bool, err error) {
	about := c
	var oldID, newID []byte
	if old != nil {
		about, oldID = old, []byte(old.ID)
	}
	var dc driver.Claim
	known, stay := false, false
	s.mu.Lock()
	if c != nil {
		if c.Leaving || s.lost {
			s.mu.Unlock()
			return false, fmt.Errorf("pglock: %w: the claim is being released", driver.ErrNotSent)
		}
		dc, newID, known = c.Claim, []byte(c.ID), c.state != out
		stay = known && renew || !known && dc.Queue
		c.asked = s.d.hearing(c)
	}
	s.mu.Unlock()
	started := time.Now()
	a, err := s.d.step(ctx, octets(about.Name), []byte(s.id), oldID, newID, strconv.AppendBool(nil, known), strconv.AppendBool(nil, stay),
		decimal(int64(dc.Kind)), decimal(int64(dc.Weight)), decimal(int64(dc.Limit)), decimal(int64(dc.Passes)), octets(dc.Note),
		decimal(s.deadline()), decimal(max((s.timeout/2).Milliseconds(), 1)))
	s.mu.Lock()
	defer s.mu.Unlock()
	if c != nil && (a.twice || err != nil && !errors.Is(err, driver.ErrNotSent) && !errors.Is(err, driver.ErrRefused)) {
		c.void = started.Add(s.timeout)
	}
	if err != nil {
		if old != nil {
			old.Unsure = true
		}
		return false, fmt.Errorf("pglock: %w", err)
	}
	f := [6]string{} // state, was, fence, left_us, head, way
	copy(f[:], strings.SplitN(string(a.rows[0][0]), " ", len(f)))
	was = f[1] == "t"
	if old != nil && a.twice && !was && old.state == held && !old.Unsure {
		// That the claim stood there, the second attempt could tell; that it did not, cannot tell whether the first took it out.
		old.Unsure = true
		return false, errTwice
	}
	if c == nil || c.Leaving {
		return was, nil
	}
	switch st := state(number(f[0])); st {
	case held:
		c.admit(number(f[2]))
		s.d.unhear(c)
	case waiting:
		if c.state <= waiting {
			c.state, c.grant.Holder = waiting, inWay(f[5])
			c.schedule(number(f[3]), f[4] == "t", s.d.direct)
		}
	case out:
		c.grant.Holder = inWay(f[5])
	case broken, gone:
		c.end(st)
	case misfit:
		return was, fmt.Errorf("pglock: name %q: %w: permits of a semaphore never share a name with other claims", c.Name, driver.ErrRefused)
	case over:
		return was, s.ends()
	case void:
		s.at, s.clock = started, number(f[2]) // it was set
		return was, fmt.Errorf("pglock: %w: the request was late, or the database's clock has leapt", driver.ErrNotSent)
	}
	return was, nil
}

var errTwice = errors.New("pglock: the connection ended before the answer, and when asked again the server has the claim no more")

// schedule takes in when a waiting claim should look again by itself: a moment later, so that the time is over then. Where nobody
// can be told, the first in line looks often. The session's mutex is held.
func (c *claim) schedule(left int64, head, direct bool) {
	c.again = time.Time{}
	if left >= 0 {
		c.again = time.Now().Add(time.Duration(left)*time.Microsecond + time.Millisecond)
	}
	if !direct {
		pause := poll
		if head {
			pause = pollFirst
		}
		if at := time.Now().Add(pause); c.again.IsZero() || at.Before(c.again) {
			c.again = at
		}
	}
	c.change.Give()
}

// How often a claim asks that nobody can tell.
const (
	pollFirst = 25 * time.Millisecond
	poll      = 250 * time.Millisecond
)

// Release implements driver.Session.
func (s *session) Release(ctx context.Context, dc driver.Claim) (bool, error) {
	c, err := s.releasing(dc)
	if err != nil {
		return false, err
	}
	return s.release(ctx, c)
}

// releasing returns the claim with no request but its Release from now on.
func (s *session) releasing(dc driver.Claim) (*claim, error) {
	if err := check(dc); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claims.Leaving(dc.ID, s.closed || s.lost, func() *claim { return s.newClaim(dc) }), nil
}

// release takes the claim out, once.
func (s *session) release(ctx context.Context, c *claim) (bool, error) {
	return c.Release(ctx, &s.mu, true, s.timeout, func(ctx context.Context) error {
		was, err := s.turn(ctx, c, nil, false)
		if err != nil {
			return fmt.Errorf("release %q: %w", c.Name, err)
		}
		s.gone(c, was)
		return nil
	})
}

// gone notes that the claim has left. What a request that may still be under way puts into the line after that is released when no more
// can come.
func (s *session) gone(c *claim, was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Left, c.Was = true, was
	c.end(gone)
	s.forget(c)
	if wait := time.Until(c.void); wait > 0 {
		time.AfterFunc(wait, func() {
			ctx, cancel := context.WithTimeout(s.d.ctx, s.timeout)
			defer cancel()
			_, _ = s.turn(ctx, c, nil, false) // else the session's end removes it
		})
	}
}

// Requeue implements driver.Requeuer: one statement does both.
func (s *session) Requeue(ctx context.Context, oldClaim, nextClaim driver.Claim) (driver.Grant, bool, error) {
	next, err := s.claim(nextClaim)
	if err != nil {
		return driver.Grant{}, false, err
	}
	old, err := s.releasing(oldClaim)
	if err != nil {
		return driver.Grant{}, false, err
	}
	was := false
	err = s.fly(ctx, old, func(ctx context.Context) error {
		return s.fly(ctx, next, func(ctx context.Context) (err error) {
			if was, err = s.turn(ctx, old, next, true); err == nil {
				s.gone(old, was)
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
