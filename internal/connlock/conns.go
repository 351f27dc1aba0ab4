package connlock

import (
	"context"
	"errors"
	"slices"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// conn is a connection of the session, and the claims that it has or is asked for. The session's mutex guards it.
type conn struct {
	Conn
	apart   bool              // for one claim at a time, which waits or has waited
	claims  map[string]*claim // by key
	blocked bool              // in a Wait
	ended   bool
}

// idle is how many connections apart are kept that have nothing.
const idle = 2

// holding returns the holding connection, and makes it where it is missing.
func (s *Session) holding(ctx context.Context) (*conn, error) { return s.take(ctx, nil, false) }

// take returns a connection for a claim: the holding one, if that does not have the key, since a connection is given again what it has;
// else, or where the claim wants one apart, one that has nothing. What is missing is made. Without a claim it is the holding one.
func (s *Session) take(ctx context.Context, l *claim, apart bool) (*conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.closed {
		if c := s.find(l, apart); c != nil {
			return c, nil
		}
		apart = apart || slices.ContainsFunc(s.conns, func(c *conn) bool { return !c.apart })
		s.mu.Unlock()
		err := sessions.Aside(ctx, s.timeout, func(ctx context.Context) error { return s.add(ctx, apart) })
		s.mu.Lock()
		if err != nil {
			return nil, err
		}
	}
	return nil, driver.ErrSessionLost
}

// find is take where nothing has to be made: else it returns nil. s.mu is held.
func (s *Session) find(l *claim, apart bool) *conn {
	for _, c := range s.conns {
		if c.apart && (l == nil || len(c.claims) > 0) || !c.apart && (apart || l != nil && c.claims[l.Key] != nil) {
			continue
		}
		if l != nil {
			c.claims[l.Key], l.conn = l, c
		}
		return c
	}
	return nil
}

// add makes a connection.
func (s *Session) add(ctx context.Context, apart bool) (err error) {
	if end, ok := ctx.Deadline(); ok { // of a context without a timer, perhaps
		timed, cancel := context.WithDeadline(ctx, end)
		defer cancel()
		ctx = timed
	}
	c := &conn{apart: apart, claims: map[string]*claim{}}
	if c.Conn, err = s.d.Store.Dial(ctx, s.spec, func() { s.lost(c) }); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		c.Close()
	case !c.ended:
		s.conns = append(s.conns, c)
	}
	return nil
}

// part takes a claim off its connection. s.mu is held.
func (s *Session) part(l *claim) {
	c := l.conn
	delete(c.claims, l.Key)
	l.conn = nil
	spare := 0
	for _, other := range s.conns {
		if other.apart && len(other.claims) == 0 {
			spare++
		}
	}
	if c.apart && spare > idle {
		s.drop(c)
		c.Close()
	}
}

// drop has a connection in use no more. s.mu is held.
func (s *Session) drop(c *conn) {
	c.ended = true
	s.conns = slices.DeleteFunc(s.conns, func(other *conn) bool { return other == c })
}

// lost takes in that a connection has ended, with all that it had. The session goes on for the others.
func (s *Session) lost(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(c)
	for _, l := range c.claims {
		if l.state == held || l.state == waiting {
			s.lose(l)
		}
	}
}

// end ends a connection: what it had is free, and the session knows.
func (s *Session) end(c *conn) {
	c.Close()
	s.lost(c)
}

// ping asks over a connection, and ends one that is not to be trusted any more.
func (s *Session) ping(c *conn) {
	if c.Ping() != nil {
		s.end(c)
	}
}

// over takes in the error of a connection that has ended, and reports whether it is one.
func (s *Session) over(c *conn, err error) bool {
	if !errors.Is(err, ErrEnded) {
		return false
	}
	s.end(c)
	return true
}
