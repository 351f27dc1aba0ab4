package redissonlock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/internal/sessions"
)

// session is one liveness: the TTL of all its claims. The server knows nothing of it.
type session struct {
	d       *Driver
	ttl     time.Duration
	ttlMS   string
	keepMS  string // how long our notes outlive their last visitor
	timeout time.Duration
	owner   []byte

	sessions.Alarm

	claims sessions.Claims[*claim] // this and closed are guarded by the driver's mutex
	closed bool
}

func newSession(d *Driver, spec driver.Spec) *session {
	ttl := spec.TTL.Truncate(time.Millisecond)
	return &session{
		d: d, ttl: ttl, ttlMS: strconv.FormatInt(ttl.Milliseconds(), 10),
		keepMS:  strconv.FormatInt(max(3*ttl, time.Hour).Milliseconds(), 10),
		timeout: min(d.options.Timeout, ttl), owner: spec.Owner.Encode(),
		Alarm: sessions.NewAlarm(), claims: sessions.Claims[*claim]{},
	}
}

// Valid implements driver.Session: the TTL less the drift between the server's clock and ours, as Redlock reckons it.
// Source: "Distributed Locks with Redis", redis.io.
func (s *session) Valid() time.Duration { return s.ttl - s.ttl/100 - 2*time.Millisecond }

var errPermit = errors.New("the semaphores of Redisson know no owners, so that a crash loses permits for good, and its expirable ones trust the clocks of clients: use another store for semaphores")

// check refuses a claim that cannot be kept.
func check(c driver.Claim) error {
	if c.ID == "" {
		return fmt.Errorf("redissonlock: a claim without an ID: want one of driver.NewID: %w", driver.ErrRefused)
	}
	if c.Kind == driver.Permit {
		return fmt.Errorf("redissonlock: name %q: %w: %w", c.Name, driver.ErrRefused, errPermit)
	}
	return redisstore.CheckName("redissonlock", c.Name)
}

// claim returns what is known of c, from now on at least its ID.
func (s *session) claim(c driver.Claim) (*claim, error) {
	if err := check(c); err != nil {
		return nil, err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.closed {
		return nil, driver.ErrSessionLost
	}
	return s.claims.Of(c.ID, func() *claim { return s.newClaim(c) }), nil
}

func (s *session) newClaim(c driver.Claim) *claim {
	return &claim{Claim: c, keys: keysOf(c.Name, s.d.cluster), field: fieldOf(s.d.client, c.ID, c.Kind), change: sessions.NewSignal()}
}

// forget drops a claim that does not stand in the store any more, or never did. d.mu is held.
func (s *session) forget(c *claim) { s.claims.Forget(c.ID, c) }

// fly makes one call for c, after the one before.
func (s *session) fly(ctx context.Context, c *claim, call func(ctx context.Context) error) error {
	return c.Fly(ctx, &s.d.mu, s.d.conn.Abandons(), s.timeout, call)
}

// Close implements driver.Session.
func (s *session) Close(ctx context.Context) error {
	s.d.mu.Lock()
	s.closed = true
	leaving := s.claims.AllLeaving()
	now := time.Now()
	for _, c := range leaving {
		c.exit(now)
		c.change.Give()
	}
	s.d.mu.Unlock()
	for _, c := range leaving { // a request under way may take a name
		c.Rest(ctx, &s.d.mu)
	}
	err := s.leaveAll(ctx, leaving)
	s.d.sessions.Remove(s)
	return err
}
