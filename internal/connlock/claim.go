package connlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// claim is a claim and the connection that it lives with. The session's mutex guards it.
type claim struct {
	Lock
	conn    *conn // that has it, or is asked for it
	state   state
	fence   uint64
	unheard bool // a Renew passed over it while it waited
	sessions.Departure
}

type state uint8

// The states of a claim. It moves down the list.
const (
	out     state = iota // in no line, as far as is known
	waiting              // the server shows that it waits
	held
	gone
)

func (l *claim) move(to state, fence uint64) { l.state, l.fence = to, fence }

// lose moves a claim to gone, and tells its owner unless he wants it so. s.mu is held.
func (s *Session) lose(l *claim) {
	if l.move(gone, 0); !l.Leaving && !s.closed {
		s.Lose(driver.Loss{ID: l.ID, Err: driver.ErrGone})
	}
}

// admit moves a claim to held, if its connection still is there. s.mu is held.
func (s *Session) admit(l *claim, fence uint64) {
	if l.conn.ended {
		s.lose(l)
		return
	}
	l.move(held, fence)
}

// Acquire implements driver.Session.
func (s *Session) Acquire(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, fmt.Errorf("%s: %w: %w", s.d.Package, driver.ErrNotSent, err)
	}
	l, err := s.claim(dc)
	if err != nil {
		return driver.Grant{}, err
	}
	err = l.Fly(ctx, &s.mu, true, s.timeout, func(ctx context.Context) error { return s.acquire(ctx, l) })
	if err != nil {
		err = fmt.Errorf("%s: lock %q: %w", s.d.Package, dc.Name, err)
	}
	return s.answer(l, err)
}

func (s *Session) acquire(ctx context.Context, l *claim) error {
	s.mu.Lock()
	st, c := l.state, l.conn
	l.unheard = l.unheard || st == waiting
	if l.Leaving {
		st = gone
	}
	s.mu.Unlock()
	switch {
	case st == held:
		return sessions.Aside(ctx, s.timeout, func(context.Context) error {
			s.ping(c)
			s.mu.Lock()
			defer s.mu.Unlock()
			l.unheard = false
			return nil
		})
	case st != out:
		return nil
	case c != nil: // asked for before, and nobody knows its place
		return sessions.Aside(ctx, s.timeout, func(ctx context.Context) error { return s.queue(ctx, l) })
	case s.apart != nil:
		return sessions.Aside(ctx, s.timeout, func(ctx context.Context) error { return s.enter(ctx, l) })
	}
	return s.enter(ctx, l)
}

// enter takes what is free, and else puts the claim into the server's line.
func (s *Session) enter(ctx context.Context, l *claim) error {
	got, err := s.try(ctx, l)
	if errors.Is(err, ErrEnded) { // for having been idle, perhaps
		got, err = s.try(ctx, l)
	}
	if err != nil || got || !l.Queue {
		return err
	}
	return sessions.Aside(ctx, s.timeout, func(ctx context.Context) error { return s.queue(ctx, l) })
}

// try takes what is free, in one round trip. What another claim of the session excludes is not asked for.
func (s *Session) try(ctx context.Context, l *claim) (bool, error) {
	if s.excludes(l) {
		return false, nil
	}
	if there, err := s.prepare(ctx, l); err != nil || !there {
		return false, err
	}
	c, err := s.take(ctx, l, s.apart != nil)
	if err != nil {
		return false, err
	}
	var got bool
	var failed error
	late := c.Try(ctx, l.Lock, func(g driver.Grant, err error) {
		if err == nil && g.Held {
			if g.Fence, err = s.draw(l, g.Fence); err != nil {
				s.end(c) // it has the lock
			}
		}
		s.over(c, err)
		s.mu.Lock()
		defer s.mu.Unlock()
		if got, failed = err == nil && g.Held, err; got {
			s.admit(l, g.Fence)
		} else {
			s.part(l)
		}
	})
	if late != nil {
		return false, late
	}
	return got, failed
}

// excludes reports whether the session has a claim that excludes another one.
func (s *Session) excludes(l *claim) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		if other := c.claims[l.Key]; other != nil && other.state == held && (other.Kind.Exclusive() || l.Kind.Exclusive()) {
			return true
		}
	}
	return false
}

// prepare makes what is to be locked, where that is not made by locking it.
func (s *Session) prepare(ctx context.Context, l *claim) (bool, error) {
	if s.apart == nil {
		return true, nil
	}
	c, err := s.holding(ctx)
	if err != nil {
		return false, err
	}
	there, err := s.apart.Prepare(c.Conn, l.Lock)
	s.over(c, err)
	return there, err
}

// draw draws a token for a lock that was taken, where it was not drawn with it.
func (s *Session) draw(l *claim, fence uint64) (uint64, error) {
	if s.apart == nil {
		return fence, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), max(s.spec.TTL, time.Second))
	defer cancel()
	c, err := s.holding(ctx)
	if err == nil {
		fence, err = s.apart.Draw(c.Conn, l.Lock)
		s.over(c, err)
	}
	if err != nil {
		err = fmt.Errorf("there is no token: %s", err.Error()) // it is the end of no connection that has the lock
	}
	return fence, err
}

// queue puts a claim into the server's line, on a connection apart. It has its place when the server shows it; after an error nobody knows.
func (s *Session) queue(ctx context.Context, l *claim) error {
	if l.conn == nil {
		if err := s.begin(ctx, l); err != nil {
			return err
		}
	}
	end, _ := ctx.Deadline() // of a context without a timer
	for looks := 1; ; looks++ {
		c, err := s.holding(ctx)
		if err != nil {
			return fmt.Errorf("its place in line is not known: %s", err.Error()) // nothing that is certain
		}
		shown, err := c.Waits(ctx, l.conn.Conn)
		s.over(c, err)
		s.mu.Lock()
		if l.state == out && err == nil && shown {
			l.state = waiting
		}
		st := l.state
		s.mu.Unlock()
		if st != out {
			return nil
		}
		if !time.Now().Before(end) {
			return context.DeadlineExceeded
		}
		if err := l.conn.pause(ctx, looks); err != nil {
			return err
		}
	}
}

// pause lets a Wait get to its place, or be answered, before the next look: until the server has come to it, which then takes no longer than
// a look, and no timer is that short.
func (c *conn) pause(ctx context.Context, looks int) error {
	const atOnce = 4
	if looks <= atOnce {
		return c.Begins(ctx)
	}
	shortly, cancel := context.WithTimeout(ctx, min(time.Duration(looks-atOnce)*time.Millisecond, 20*time.Millisecond))
	defer cancel()
	_ = c.Await(shortly)
	return ctx.Err()
}

// begin has a connection wait for a claim.
func (s *Session) begin(ctx context.Context, l *claim) error {
	s.mu.Lock()
	s.waiting++
	full := s.waiting > s.d.MaxWaiting
	s.mu.Unlock()
	var c *conn
	var err error
	if full {
		err = fmt.Errorf("%w: %w: %d claims of this session wait on a connection each: raise MaxWaiting%s", driver.ErrNotSent, driver.ErrUnable, s.d.MaxWaiting, s.d.Instead)
	} else {
		c, err = s.take(ctx, l, true)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.waiting--
		return err
	}
	c.blocked = true
	c.Wait(l.Lock, func(g driver.Grant, err error) { s.decide(l, c, g, err) })
	return nil
}

// decide takes in what has come of a wait.
func (s *Session) decide(l *claim, c *conn, g driver.Grant, err error) {
	if err == nil {
		g.Fence, err = s.draw(l, g.Fence)
	}
	s.mu.Lock()
	s.waiting--
	c.blocked = false
	unknown := false
	switch {
	case err == nil:
		s.admit(l, g.Fence)
	case l.state != gone:
		s.lose(l)
		unknown = !l.Leaving // else its Release gives back what was got all the same
	}
	s.mu.Unlock()
	if unknown {
		s.end(c)
	}
}

// Wait implements driver.Session.
func (s *Session) Wait(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	l, err := s.claim(dc)
	if err != nil {
		return driver.Grant{}, err
	}
	for {
		s.mu.Lock()
		st, unheard, c := l.state, l.unheard, l.conn
		s.mu.Unlock()
		switch {
		case st == out, st == held && unheard: // the last Renew passed over it, and its time had begun before, perhaps
			return s.Acquire(ctx, dc)
		case st != waiting:
			return s.answer(l, nil)
		}
		if err := c.Await(ctx); err != nil {
			return s.answer(l, err)
		}
	}
}

// Release implements driver.Session.
func (s *Session) Release(ctx context.Context, dc driver.Claim) (bool, error) {
	l, err := s.claim(dc)
	if errors.Is(err, driver.ErrSessionLost) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	l.Depart()
	s.mu.Unlock()
	return s.release(ctx, l)
}

func (s *Session) release(ctx context.Context, l *claim) (bool, error) {
	was, err := l.Departure.Release(ctx, &s.mu, true, s.timeout, func(ctx context.Context) error { return s.leave(ctx, l) })
	if err != nil {
		err = fmt.Errorf("%s: release %q: %w", s.d.Package, l.Name, err)
	}
	return was, err
}

// leave takes the claim out, once. A statement that waits is cancelled, and what it may have got before is given back like all else. Where
// none can be cancelled, or nobody knows what a connection has, that ends.
func (s *Session) leave(ctx context.Context, l *claim) error {
	s.mu.Lock()
	c := l.conn
	blocked := c != nil && c.blocked
	s.mu.Unlock()
	if !blocked {
		return s.giveBack(ctx, l)
	}
	return sessions.Aside(ctx, s.timeout, func(ctx context.Context) error {
		if c.Cancel(ctx) != nil {
			s.end(c)
		}
		if err := c.Await(ctx); err != nil {
			return err
		}
		return s.giveBack(ctx, l)
	})
}

// giveBack takes a claim out that no statement waits for.
func (s *Session) giveBack(ctx context.Context, l *claim) error {
	s.mu.Lock()
	c, mine := l.conn, l.state == held
	s.mu.Unlock()
	if c == nil {
		s.left(l, false)
		return nil
	}
	return c.Leave(ctx, l.Lock, func(given bool, err error) {
		if err != nil || mine && !given {
			s.end(c)
		}
		s.left(l, mine && given)
	})
}

// left forgets a claim that is out of the line.
func (s *Session) left(l *claim, was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.conn != nil {
		s.part(l)
	}
	l.Left, l.Was = true, was
	l.move(gone, 0)
	s.claims.Forget(l.ID, l)
}
