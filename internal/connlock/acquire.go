package connlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// Acquire implements driver.Session.
func (s *Session) Acquire(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, fmt.Errorf("%s: %w: %w", s.config.Package, driver.ErrNotSent, err)
	}
	l, err := s.claim(dc)
	if err != nil {
		return driver.Grant{}, err
	}
	err = l.Fly(ctx, &s.mu, true, s.timeout, func(ctx context.Context) error { return s.acquire(ctx, l) })
	if err != nil {
		err = fmt.Errorf("%s: lock %q: %w", s.config.Package, dc.Name, err)
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

// enter takes the lock if it is free. If not, a claim that may wait is put into the server's line.
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

// try takes the lock if it is free, in one round trip. It asks for nothing that another claim of
// the session excludes.
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
				s.closeConn(c) // it has the lock
			}
		}
		s.failed(c, err)
		s.mu.Lock()
		defer s.mu.Unlock()
		if got, failed = err == nil && g.Held, err; got {
			s.admit(l, g.Fence)
		} else {
			s.detach(l)
		}
	})
	if late != nil {
		return false, late
	}
	return got, failed
}

// prepare makes what is to be locked, if the store does not make it by locking it.
func (s *Session) prepare(ctx context.Context, l *claim) (bool, error) {
	if s.apart == nil {
		return true, nil
	}
	c, err := s.holding(ctx)
	if err != nil {
		return false, err
	}
	there, err := s.apart.Prepare(c.Conn, l.Lock)
	s.failed(c, err)
	return there, err
}

// draw returns the token of a lock that was taken: fence, unless the store draws tokens apart.
func (s *Session) draw(l *claim, fence uint64) (uint64, error) {
	if s.apart == nil {
		return fence, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), max(s.spec.TTL, time.Second))
	defer cancel()
	c, err := s.holding(ctx)
	if err == nil {
		fence, err = s.apart.Draw(c.Conn, l.Lock)
		s.failed(c, err)
	}
	if err != nil {
		err = fmt.Errorf("there is no token: %s", err.Error()) // it is the end of no connection that has the lock
	}
	return fence, err
}

// queue puts a claim into the server's line, on a single connection. It returns when the server
// shows that the connection waits, since then the claim has its place. After an error the place is
// not known.
func (s *Session) queue(ctx context.Context, l *claim) error {
	if l.conn == nil {
		if err := s.beginWait(ctx, l); err != nil {
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
		s.failed(c, err)
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

// beginWait sends the Wait of a claim over a single connection.
func (s *Session) beginWait(ctx context.Context, l *claim) error {
	s.mu.Lock()
	s.waiting++
	full := s.waiting > s.config.MaxWaiting
	s.mu.Unlock()
	var c *conn
	var err error
	if full {
		err = fmt.Errorf("%w: %w: %d claims of this session wait on a connection each: raise MaxWaiting%s", driver.ErrNotSent, driver.ErrUnable, s.config.MaxWaiting, s.config.Instead)
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
	c.Wait(l.Lock, func(g driver.Grant, err error) { s.waitEnded(l, c, g, err) })
	return nil
}

// waitEnded handles the answer to a Wait.
func (s *Session) waitEnded(l *claim, c *conn, g driver.Grant, err error) {
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
		unknown = !l.Leaving // else its Release releases what was taken all the same
	}
	s.mu.Unlock()
	if unknown {
		s.closeConn(c)
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
