package connlock

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

// Session implements driver.Session.
type Session struct {
	sessions.Alarm
	d       *Sessions
	spec    driver.Spec
	timeout time.Duration // of a call
	apart   Apart         // nil where the holding connection takes locks

	mu      sync.Mutex
	claims  sessions.Claims[*claim]
	conns   []*conn // one is the holding connection, while it lives; two, where two calls missed it at once
	waiting int
	closed  bool
}

func newSession(d *Sessions, spec driver.Spec) *Session {
	apart, _ := d.Store.(Apart)
	return &Session{Alarm: sessions.NewAlarm(), d: d, spec: spec, timeout: min(d.Timeout, spec.TTL), apart: apart, claims: sessions.Claims[*claim]{}}
}

// open makes the holding connection.
func (s *Session) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.add(ctx, false); err != nil {
		return fmt.Errorf("%s: open a session: %w", s.d.Package, err)
	}
	return nil
}

// Valid implements driver.Session: a connection's time begins when it has answered, and passes at the server's pace.
func (s *Session) Valid() time.Duration { return s.spec.TTL - s.spec.TTL/100 - 2*time.Millisecond }

// Renew implements driver.Session: it asks over each connection that has a lock, side by side. What is not answered in time is answered
// later, or never: to cancel it would close the connection.
func (s *Session) Renew(ctx context.Context) (driver.Renewal, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	r, err := s.renew(ctx)
	if err != nil {
		err = fmt.Errorf("%s: renew: %w", s.d.Package, err)
	}
	return r, err
}

func (s *Session) renew(ctx context.Context) (driver.Renewal, error) {
	c, err := s.holding(ctx) // shows that the server is there, whatever it has
	if err != nil {
		return driver.Renewal{}, err
	}
	renewed := map[*conn]bool{c: true}
	s.mu.Lock()
	for _, l := range s.claims {
		switch {
		case l.Leaving && l.Landing() == nil: // its Release had no answer, and perhaps nobody repeats it
			go func() { _, _ = s.release(context.Background(), l) }() //nolint:contextcheck // it outlives the renewal
		case l.state == held:
			renewed[l.conn] = true
		}
		l.unheard = l.state != held
	}
	s.mu.Unlock()
	answered := make(chan struct{}, len(renewed))
	for c := range renewed {
		go func() {
			s.ping(c)
			answered <- struct{}{}
		}()
	}
	for range renewed {
		select {
		case <-answered:
		case <-ctx.Done():
			return driver.Renewal{}, ctx.Err()
		}
	}
	if _, err = s.holding(ctx); err != nil { // what the old one had is lost, if it has ended
		return driver.Renewal{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := driver.Renewal{Valid: s.Valid()}
	for _, l := range s.claims {
		if l.state == gone && !l.Leaving {
			r.Lost = append(r.Lost, driver.Loss{ID: l.ID, Err: driver.ErrGone})
		}
	}
	return r, nil
}

// Close implements driver.Session. The end of a connection releases what it has; what is held is released before, so that who comes
// next has it when Close is back.
func (s *Session) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	s.mu.Lock()
	s.closed = true
	conns := slices.Clone(s.conns)
	freed := make(chan error, len(conns))
	for _, c := range conns {
		blocked := c.blocked
		go func() {
			var err error
			if !blocked || c.Cancel(ctx) == nil {
				err = c.Free(ctx)
			}
			if s.end(c); errors.Is(err, ErrEnded) {
				err = nil
			}
			freed <- err
		}()
	}
	s.mu.Unlock()
	var err error
	for range conns {
		if e := <-freed; e != nil {
			err = fmt.Errorf("%s: close a session: %w", s.d.Package, e)
		}
	}
	s.d.all.Remove(s)
	return err
}

// claim returns what is known of a claim, from now on at least its ID.
func (s *Session) claim(c driver.Claim) (*claim, error) {
	s.mu.Lock()
	l, closed := s.claims[c.ID], s.closed
	s.mu.Unlock()
	if l != nil && !closed {
		return l, nil
	}
	key, err := s.d.Store.KeyOf(c)
	if err != nil {
		return nil, fmt.Errorf("%s: name %q: %w", s.d.Package, c.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, driver.ErrSessionLost
	}
	return s.claims.Of(c.ID, func() *claim { return &claim{Lock: Lock{c, key}} }), nil
}

// answer is the claim's state, unless err says that nothing is known.
func (s *Session) answer(l *claim, err error) (driver.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		err = driver.ErrSessionLost
	case l.state == gone:
		err = driver.ErrGone
	case l.state == out && l.conn == nil && (err == nil || errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused)):
		s.claims.Forget(l.ID, l)
	}
	if err != nil {
		return driver.Grant{}, err
	}
	return driver.Grant{Held: l.state == held, Fence: l.fence}, nil
}
