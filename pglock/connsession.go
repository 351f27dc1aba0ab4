package pglock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// connSession is a session whose locks live with its connections. What is free is taken at once, on the holding connection. A claim that
// has to wait blocks on a connection apart, and stays there until its release. A connection ends by itself, and its locks with it, when
// nothing was asked over it for the time-to-live: to renew is to ask.
type connSession struct {
	sessions.Alarm
	d       *connDriver
	spec    driver.Spec
	timeout time.Duration

	mu      sync.Mutex
	claims  map[string]*link
	conns   []*conn // one is the holding connection, while it lives; two, where two claims missed it at once
	waiting int
	closed  bool
}

// link is a claim and the connection that it lives with. The session's mutex guards it.
type link struct {
	driver.Claim
	key     key
	conn    *conn // that has it, or is asked for it
	state   state // out, waiting, held or gone
	fence   uint64
	unheard bool          // a Renew passed over it while it waited
	decided chan struct{} // closed when the statement that waits was answered
	change  chan struct{} // wakes its Wait

	flight  sessions.Flight
	leaving bool
	left    bool
	was     bool
}

// Valid implements driver.Session: a backend's time begins when it has answered, and passes at the server's pace.
func (s *connSession) Valid() time.Duration { return s.spec.TTL - s.spec.TTL/100 - 2*time.Millisecond }

// take returns a connection for a claim: the holding one, if that does not have the key, since a backend is given again what it has;
// else, or where the claim is to wait, one that has nothing. What is missing is made. Without a claim it is the holding one.
func (s *connSession) take(ctx context.Context, l *link, apart bool) (*conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.closed {
		for _, c := range s.conns {
			if c.apart && (l == nil || len(c.claims) > 0) || !c.apart && (apart || l != nil && c.claims[l.key] != nil) {
				continue
			}
			if l != nil {
				c.claims[l.key], l.conn = l, c
			}
			return c, nil
		}
		apart = apart || slices.ContainsFunc(s.conns, func(c *conn) bool { return !c.apart })
		s.mu.Unlock()
		c, err := s.connect(ctx, apart)
		s.mu.Lock()
		switch {
		case err != nil:
			return nil, err
		case s.closed:
			c.close()
		case c.ended() == nil:
			s.conns = append(s.conns, c)
		}
	}
	return nil, driver.ErrSessionLost
}

// connect makes a connection.
func (s *connSession) connect(ctx context.Context, apart bool) (*conn, error) {
	set := fmt.Sprintf(settings, s.spec.TTL.Milliseconds(), "interlock "+s.spec.Owner.Name)
	if s.d.fence {
		set += "select " + s.d.in + "advance(); "
	}
	pc, f, err := s.d.dial(ctx, set+ping)
	if err == nil && !s.d.pooled && number(f[0]) != int64(pc.PgConn().PID()) {
		_ = pc.Close(ctx)
		err = errPooler
	}
	if err != nil {
		return nil, err
	}
	return newConn(pc, string(f[0]), apart, s.lost), nil
}

// ping asks for nothing but who answers.
const ping = "select pg_backend_pid()"

// most is how many connections apart are kept that have nothing.
const most = 2

// part takes a claim off its connection. s.mu is held.
func (s *connSession) part(l *link) {
	c := l.conn
	delete(c.claims, l.key)
	l.conn = nil
	idle := 0
	for _, other := range s.conns {
		if other.apart && len(other.claims) == 0 {
			idle++
		}
	}
	if c.apart && idle > most {
		s.conns = slices.DeleteFunc(s.conns, func(other *conn) bool { return other == c })
		c.close()
	}
}

// lost takes in that a connection has ended, with all that it had. The session goes on for the others.
func (s *connSession) lost(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = slices.DeleteFunc(s.conns, func(other *conn) bool { return other == c })
	for _, l := range c.claims {
		if l.state == held || l.state == waiting {
			s.end(l)
		}
	}
}

// end moves a claim to gone, and tells its owner unless he wants it so. s.mu is held.
func (s *connSession) end(l *link) {
	if l.move(gone, 0); !l.leaving && !s.closed {
		s.Lose(l.ID)
	}
}

func (l *link) move(to state, fence uint64) {
	l.state, l.fence = to, fence
	select {
	case l.change <- struct{}{}:
	default:
	}
}

// claim returns what is known of a claim, from now on at least its ID.
func (s *connSession) claim(c driver.Claim) (*link, error) {
	switch {
	case c.Kind == driver.Permit:
		return nil, fmt.Errorf("pglock: name %q: %w: technique %s has no permits: use technique rows", c.Name, driver.ErrRefused, s.d.options.Technique)
	case c.Name == "" || len(c.Name) > maxName:
		return nil, fmt.Errorf("pglock: name of %d bytes: want 1 to %d: %w", len(c.Name), maxName, driver.ErrRefused)
	}
	k, err := s.d.key(c.Name)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, driver.ErrSessionLost
	}
	if s.claims[c.ID] == nil {
		s.claims[c.ID] = &link{Claim: c, key: k, change: make(chan struct{}, 1)}
	}
	return s.claims[c.ID], nil
}

// fly makes one call for a claim after the one before, apart from the caller, to its end: it was answered, or its connection is no more.
// The context bounds what can be given up.
func (s *connSession) fly(ctx context.Context, l *link, call func(context.Context, *link) error) error {
	return l.flight.Fly(ctx, &s.mu, false, s.timeout, func(ctx context.Context) error {
		end, _ := ctx.Deadline()
		ctx, cancel := context.WithDeadline(ctx, end)
		defer cancel()
		return call(ctx, l)
	})
}

// Renew implements driver.Session: it asks over each connection that has a lock, side by side. What is not answered in time is answered
// later, or never: to cancel it would close the connection.
func (s *connSession) Renew(ctx context.Context) (driver.Renewal, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	c, err := s.take(ctx, nil, false) // shows that the server is there, whatever it has
	if err != nil {
		return driver.Renewal{}, fmt.Errorf("pglock: renew: %w", err)
	}
	ask := map[*conn]<-chan reply{c: nil}
	s.mu.Lock()
	for _, l := range s.claims {
		switch {
		case l.leaving && l.flight.Landing() == nil: // its Release had no answer, and perhaps nobody repeats it
			go func() { _ = s.fly(s.d.ctx, l, s.leave) }()
		case l.state == held:
			ask[l.conn] = nil
		}
		l.unheard = l.state != held
	}
	s.mu.Unlock()
	for c := range ask {
		ask[c] = c.ask(ping)
	}
	for c, answer := range ask {
		select {
		case r := <-answer:
			s.same(c, r)
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err == nil {
		_, err = s.take(ctx, nil, false) // what the old one had is lost, if it has ended
	}
	if err != nil {
		return driver.Renewal{}, fmt.Errorf("pglock: renew: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := driver.Renewal{Valid: s.Valid()}
	for _, l := range s.claims {
		if l.state == gone && !l.leaving {
			r.Lost = append(r.Lost, l.ID)
		}
	}
	return r, nil
}

// same ends a connection that another backend answers, or that is not to be trusted any more.
func (s *connSession) same(c *conn, r reply) {
	if r.err == nil && r.field() != c.pid {
		s.d.options.Logger.Error("pglock: " + errPooler.Error())
		r.err = errPooler
	}
	if r.err != nil {
		c.close()
		<-c.done
	}
}

// Close implements driver.Session. The end of a connection releases what it has; what is held is released before, so that who comes
// next has it.
func (s *connSession) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	s.mu.Lock()
	s.closed = true
	var all sync.WaitGroup
	for _, c := range s.conns {
		blocked := c.blocked
		all.Go(func() {
			answer := c.ask(s.d.release)
			if blocked {
				_ = c.pg.CancelRequest(ctx)
			}
			select {
			case <-answer:
			case <-ctx.Done():
			}
			c.close()
			<-c.done
		})
	}
	s.mu.Unlock()
	all.Wait()
	s.d.all.Remove(s)
	return nil
}

// answer is the claim's state, unless err says that nothing is known.
func (s *connSession) answer(l *link, err error) (driver.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		err = driver.ErrSessionLost
	case l.state == gone:
		err = driver.ErrGone
	case l.state == out && l.conn == nil && (err == nil || errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused)):
		delete(s.claims, l.ID)
	}
	if err != nil {
		return driver.Grant{}, err
	}
	return driver.Grant{Held: l.state == held, Fence: l.fence}, nil
}
