package pglock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// connSession is a session whose locks live with its connections. What is free it takes at once, on one holding connection. A claim that
// has to wait blocks on a connection of its own, and stays there until its release. Each connection that has a lock ends by itself,
// and the locks with it, when nothing was asked over it for the time-to-live: to renew is to ask.
type connSession struct {
	sessions.Alarm
	d       *connDriver
	spec    driver.Spec
	timeout time.Duration
	dialing chan struct{} // full while the holding connection is made

	mu      sync.Mutex
	claims  map[string]*link
	conns   map[*conn]struct{}
	main    *conn // the holding connection; nil until it is needed again
	waiting int
	closed  bool
}

// link is a claim and the connection that it lives with.
type link struct {
	driver.Claim
	key     key
	conn    *conn // that has it, or is asked for it
	state   state
	fence   uint64
	unheard bool          // a Renew passed over it while it waited
	decided chan struct{} // closed when the statement that waits was answered; nil where none was sent
	change  chan struct{} // wakes its Wait

	flight  sessions.Flight
	leaving bool
	left    bool
	was     bool
}

func newConnSession(d *connDriver, spec driver.Spec) *connSession {
	spec.TTL = spec.TTL.Truncate(time.Millisecond)
	return &connSession{
		Alarm: sessions.NewAlarm(), d: d, spec: spec, timeout: min(d.options.Timeout, spec.TTL), dialing: make(chan struct{}, 1),
		claims: map[string]*link{}, conns: map[*conn]struct{}{},
	}
}

// Valid implements driver.Session: the backend's time runs from when it has answered, at the server's pace.
func (s *connSession) Valid() time.Duration {
	return s.spec.TTL - s.spec.TTL/100 - 2*time.Millisecond
}

// connect makes a connection.
func (s *connSession) connect(ctx context.Context) (*conn, error) {
	pc, err := s.d.dial(ctx)
	if err != nil {
		return nil, err
	}
	keepAlive(pc.PgConn().Conn())
	set := fmt.Sprintf(settings, s.spec.TTL.Milliseconds(), "interlock "+s.spec.Owner.Name)
	if s.d.fence {
		set += "select " + s.d.in + "advance(); "
	}
	f, err := s.d.one(ctx, pc, set+"select pg_backend_pid()")
	if err == nil && !s.d.pooled && number(f[0]) != int64(pc.PgConn().PID()) {
		err = errPooler
	}
	if err != nil {
		_ = pc.Close(ctx)
		return nil, err
	}
	c := newConn(pc, string(f[0]), s.ended)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		c.close()
		return nil, driver.ErrSessionLost
	}
	s.conns[c] = struct{}{}
	return c, nil
}

// holding returns the holding connection, and makes it if it is missing.
func (s *connSession) holding(ctx context.Context) (*conn, error) {
	select {
	case s.dialing <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", driver.ErrNotSent, ctx.Err())
	}
	defer func() { <-s.dialing }()
	s.mu.Lock()
	c := s.main
	s.mu.Unlock()
	if c != nil {
		return c, nil
	}
	c, err := s.connect(ctx)
	if err == nil {
		s.mu.Lock()
		if _, there := s.conns[c]; there {
			s.main = c
		}
		s.mu.Unlock()
	}
	return c, err
}

// spare takes a connection that has nothing for a claim, or makes one. It is the claim's from then on.
func (s *connSession) spare(ctx context.Context, l *link) (*conn, error) {
	take := func(c *conn) *conn {
		c.claims[l.key] = l
		l.conn = c
		return c
	}
	s.mu.Lock()
	for c := range s.conns {
		if c != s.main && len(c.claims) == 0 {
			defer s.mu.Unlock()
			return take(c), nil
		}
	}
	s.mu.Unlock()
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.conns[c]; !there {
		return nil, fmt.Errorf("%w: a new connection ended at once", driver.ErrNotSent)
	}
	return take(c), nil
}

// most is how many connections are kept that have nothing to do.
const most = 2

// part takes a claim off its connection. s.mu is held.
func (s *connSession) part(l *link) {
	c := l.conn
	if c == nil {
		return
	}
	l.conn = nil
	delete(c.claims, l.key)
	idle := 0
	for other := range s.conns {
		if other != s.main && len(other.claims) == 0 {
			idle++
		}
	}
	if idle > most && c != s.main {
		delete(s.conns, c)
		c.close()
	}
}

// ended takes in that a connection has ended: what it had is lost, and the session goes on for the others.
func (s *connSession) ended(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	if s.main == c {
		s.main = nil
	}
	for _, l := range c.claims {
		if l.state == held || l.state == waiting {
			l.end()
			if !l.leaving {
				s.Lose(l.ID)
			}
		}
	}
}

// end moves the claim to gone.
func (l *link) end() {
	l.state, l.fence = gone, 0
	l.changed()
}

func (l *link) changed() {
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
	l := s.claims[c.ID]
	if l == nil {
		l = &link{Claim: c, key: k, change: make(chan struct{}, 1)}
		s.claims[c.ID] = l
	}
	return l, nil
}

// fly makes one call for a claim after the one before, apart from the caller, to its end: until it was answered, or its connection is no
// more.
func (s *connSession) fly(ctx context.Context, l *link, call func(ctx context.Context) error) error {
	return l.flight.Fly(ctx, &s.mu, false, s.timeout, func(ctx context.Context) error {
		end, _ := ctx.Deadline()
		ctx, cancel := context.WithDeadline(ctx, end)
		defer cancel()
		return call(ctx)
	})
}

// answer is the claim's state, unless err says that nothing is known.
func (s *connSession) answer(l *link, err error) (driver.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return driver.Grant{}, driver.ErrSessionLost
	case l.state == gone:
		return driver.Grant{}, driver.ErrGone
	case l.state == out && (err == nil || errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused)) && l.conn == nil:
		delete(s.claims, l.ID)
	}
	if err != nil {
		return driver.Grant{}, err
	}
	return driver.Grant{Held: l.state == held, Fence: l.fence}, nil
}

// Renew implements driver.Session: it asks over each connection that has a lock, side by side. What is not answered in time is answered
// later, or never: to cancel it would close the connection.
func (s *connSession) Renew(ctx context.Context) (driver.Renewal, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	main, err := s.holding(ctx) // shows that the server is there, whatever it has
	if err != nil {
		return driver.Renewal{}, fmt.Errorf("pglock: renew: %w", err)
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return driver.Renewal{}, driver.ErrSessionLost
	}
	ask := map[*conn]<-chan reply{main: nil}
	for _, l := range s.claims {
		switch {
		case l.leaving && !l.left && l.flight.Landing() == nil: // its Release had no answer, and perhaps nobody repeats it
			go func() { _ = s.fly(s.d.ctx, l, func(ctx context.Context) error { return s.leave(ctx, l) }) }()
		case l.state == held:
			ask[l.conn] = nil
		default:
			l.unheard = true
		}
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
		_, err = s.holding(ctx) // what the old one had is lost, if it has ended
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

// ping asks for nothing, and who answers.
const ping = "select pg_backend_pid()"

// same closes a connection whose backend is another one than before, or that is not to be trusted any more.
func (s *connSession) same(c *conn, r reply) {
	if r.err == nil && r.field(0) != c.pid {
		s.d.options.Logger.Error("pglock: " + errPooler.Error())
		r.err = errPooler
	}
	if r.err != nil {
		c.close()
		<-c.done
	}
}

// Close implements driver.Session: the end of a connection releases what it has, and so that nobody waits for it, what is held is
// released before.
func (s *connSession) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	for _, l := range s.claims {
		l.leaving = true
		l.end()
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var all sync.WaitGroup
	for _, c := range conns {
		all.Go(func() {
			answer := c.ask("select pg_advisory_unlock_all(); rollback")
			s.mu.Lock()
			blocked := c.blocked
			s.mu.Unlock()
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
	all.Wait()
	s.d.all.Remove(s)
	return nil
}
