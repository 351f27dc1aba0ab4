package connlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// Config is what the sessions of a driver have in common.
type Config struct {
	Store          Store
	Package        string        // begins messages
	Technique      string        // as its users know it, for messages
	Timeout        time.Duration // of a call, when its caller does not give up before; at most the TTL
	MinTTL, MaxTTL time.Duration
	MaxWaiting     int    // how many claims of a session may wait at once
	Instead        string // what else may be done about that, to end a message
}

// Session implements driver.Session.
type Session struct {
	sessions.Alarm
	config  *Config
	apart   Apart  // nil where the holding connection takes locks
	onClose func() // called when it is closed

	pool    // has the mutex, which guards what follows
	claims  sessions.Claims[*claim]
	waiting int // how many claims are in a Wait, or about to be
}

func newSession(config *Config, spec driver.Spec) *Session {
	s := &Session{
		Alarm: sessions.NewAlarm(), config: config, claims: sessions.Claims[*claim]{},
		pool: pool{store: config.Store, spec: spec, timeout: min(config.Timeout, spec.TTL)},
	}
	s.apart, _ = config.Store.(Apart)
	s.onLost = s.lose
	return s
}

// open makes the holding connection.
func (s *Session) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.add(ctx, false); err != nil {
		return fmt.Errorf("%s: open a session: %w", s.config.Package, err)
	}
	return nil
}

// Valid implements driver.Session: a connection's time begins when it has answered, and passes at
// the server's pace.
func (s *Session) Valid() time.Duration { return s.spec.TTL - s.spec.TTL/100 - 2*time.Millisecond }

// claim returns the state of a claim, which it makes if there is none.
func (s *Session) claim(c driver.Claim) (*claim, error) {
	s.mu.Lock()
	l, closed := s.claims[c.ID], s.closed
	s.mu.Unlock()
	if l != nil && !closed {
		return l, nil
	}
	key, err := s.store.KeyOf(c)
	if err != nil {
		return nil, fmt.Errorf("%s: name %q: %w", s.config.Package, c.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, driver.ErrSessionLost
	}
	return s.claims.Of(c.ID, func() *claim { return &claim{Lock: Lock{c, key}} }), nil
}

// answer returns the grant of a claim, or why there is none. A claim of which the server certainly
// knows nothing is forgotten.
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

// lose moves a claim to gone, and reports the loss unless the claim is being released. s.mu is
// held.
func (s *Session) lose(l *claim) {
	if l.move(gone, 0); !l.Leaving && !s.closed {
		s.Lose(driver.Loss{ID: l.ID, Err: driver.ErrGone})
	}
}

// admit moves a claim to held, unless its connection has ended. s.mu is held.
func (s *Session) admit(l *claim, fence uint64) {
	if l.conn.ended {
		s.lose(l)
		return
	}
	l.move(held, fence)
}
