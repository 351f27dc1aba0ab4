package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
	"github.com/interlock-go/interlock/redisconn"
)

// Member is the claim of a layout: a pointer to a struct in which a Claim is embedded.
type Member interface {
	sessions.Leaver
	Common() *Claim
}

// Session is what the sessions of all layouts have in common; a layout's own embeds it. It is the
// claims of one client, which have one TTL. The server knows no sessions.
type Session[C Member] struct {
	sessions.Alarm

	TTL     time.Duration
	TTLMS   string        // TTL in ms, for scripts
	KeepMS  string        // how long the keys beside a name outlive its last claim, in ms
	Timeout time.Duration // of one request, at most TTL
	Owner   []byte        // encoded once

	Mu     *sync.Mutex // guards what follows, and each claim
	Claims sessions.Claims[C]
	Closed bool

	store  *Store
	layout Layout[C]
}

// Layout is what a Session asks of its layout.
type Layout[C Member] struct {
	Check func(driver.Claim) error // refuses a claim that the layout cannot keep
	Claim func(driver.Claim) C     // makes a claim; Mu is held
	Drop  func(C)                  // is called with a claim that is forgotten; may be nil; Mu is held
}

// NewSession returns a session whose claims mu guards.
func NewSession[C Member](store *Store, mu *sync.Mutex, spec driver.Spec, layout Layout[C]) Session[C] {
	ttl := spec.TTL.Truncate(time.Millisecond)
	return Session[C]{
		Alarm: sessions.NewAlarm(),
		TTL:   ttl, TTLMS: strconv.FormatInt(ttl.Milliseconds(), 10),
		KeepMS:  strconv.FormatInt(max(3*ttl, time.Hour).Milliseconds(), 10),
		Timeout: min(store.Timeout, ttl), Owner: spec.Owner.Encode(),
		Mu: mu, Claims: sessions.Claims[C]{}, store: store, layout: layout,
	}
}

// Valid implements driver.Session: the TTL less the drift between the server's clock and ours, as
// Redlock reckons it. Source: "Distributed Locks with Redis", redis.io.
func (s *Session[C]) Valid() time.Duration { return s.TTL - s.TTL/100 - 2*time.Millisecond }

// Claim returns the claim of c, which it makes if it is missing.
func (s *Session[C]) Claim(c driver.Claim) (member C, err error) {
	if err := s.layout.Check(c); err != nil {
		return member, err
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.Closed {
		return member, driver.ErrSessionLost
	}
	return s.Claims.Of(c.ID, func() C { return s.layout.Claim(c) }), nil
}

// Leaving returns the claim of c, for which no request but its Release is sent from now on.
func (s *Session[C]) Leaving(c driver.Claim) (member C, err error) {
	if err := s.layout.Check(c); err != nil {
		return member, err
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.Claims.Leaving(c.ID, s.Closed, func() C { return s.layout.Claim(c) }), nil
}

// LiveNames returns the names of the claims that hold or wait.
func (s *Session[C]) LiveNames() []string {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	var names []string
	for _, member := range s.Claims {
		if c := member.Common(); c.Live() {
			names = append(names, c.Name)
		}
	}
	return names
}

// Call makes one call for c, after the one before is over: see sessions.Flight.
func (s *Session[C]) Call(ctx context.Context, c C, call func(ctx context.Context, c C) error) error {
	return c.Common().Fly(ctx, s.Mu, s.store.Conn.Abandons(), s.Timeout, func(ctx context.Context) error { return call(ctx, c) })
}

// Acquire calls enter, which acquires the claim or asks for its state.
func (s *Session[C]) Acquire(ctx context.Context, dc driver.Claim, enter func(ctx context.Context, c C) error) (driver.Grant, error) {
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, fmt.Errorf("%s: %w: %w", s.store.Name, driver.ErrNotSent, err)
	}
	c, err := s.Claim(dc)
	if err != nil {
		return driver.Grant{}, err
	}
	return s.Answer(c, s.Call(ctx, c, enter))
}

// Answer returns the claim's state, or err if that is not nil. A claim that the store surely does
// not have is forgotten.
func (s *Session[C]) Answer(member C, err error) (driver.Grant, error) {
	c := member.Common()
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if err == nil {
		c.News = false
	}
	if c.State == Unsent && (err == nil || !c.Doubt && nothingDone(err)) {
		defer s.forget(member)
	}
	switch {
	case c.State == Gone:
		return driver.Grant{}, driver.ErrGone
	case c.State == Broken:
		return driver.Grant{}, driver.ErrBroken
	case err != nil:
		return driver.Grant{}, err
	}
	return c.Grant(), nil
}

// forget drops a claim that the store does not have. The caller holds Mu.
func (s *Session[C]) forget(c C) {
	if s.Claims.Forget(c.Common().ID, c) && s.layout.Drop != nil {
		s.layout.Drop(c)
	}
}

// Resend returns the Again of a request that may put c into the store. The request is sent a second
// time unless c is gone: it would take the lock for nobody. A Release waits until that is over. The
// first request may arrive even after the Release, which Doubt records.
func (s *Session[C]) Resend(member C) func() bool {
	return func() bool {
		c := member.Common()
		s.Mu.Lock()
		defer s.Mu.Unlock()
		if c.State >= Gone {
			return false
		}
		c.Doubt = true
		return true
	}
}

// Failed records whether a failed request for c may still be carried out, and returns its error.
func (s *Session[C]) Failed(member C, err error) error {
	if !nothingDone(err) {
		s.Mu.Lock()
		member.Common().Doubt = true
		s.Mu.Unlock()
	}
	return fmt.Errorf("%s: %w", s.store.Name, err)
}

// Release calls leave, which releases the claim, and reports whether it was held until then.
func (s *Session[C]) Release(ctx context.Context, dc driver.Claim, leave func(ctx context.Context, c C) error) (bool, error) {
	c, err := s.Leaving(dc)
	if err != nil {
		return false, err
	}
	return c.Common().Release(ctx, s.Mu, s.store.Conn.Abandons(), s.Timeout, func(ctx context.Context) error { return leave(ctx, c) })
}

// Undecided returns the error of a Release that may have been carried out or not.
func (s *Session[C]) Undecided(c C, err error) error {
	return fmt.Errorf("%s: release %q: %w", s.store.Name, c.Common().Name, err)
}

// Gone records that the claim is released. The caller holds Mu.
func (s *Session[C]) Gone(member C, wasHeld bool) {
	c := member.Common()
	if !c.Left {
		c.Left, c.Was = true, wasHeld
		c.End(Gone)
		s.forget(member)
	}
}

// Close releases all claims together: call makes the call for one, and released is called with the
// answer. Close waits for calls in flight first, since they may still acquire a claim.
func (s *Session[C]) Close(ctx context.Context, call func(C) redisconn.Call, released func(c C, value any)) error {
	s.Mu.Lock()
	s.Closed = true
	all := s.Claims.AllLeaving()
	for _, c := range all {
		c.Common().Change.Give()
	}
	s.Mu.Unlock()
	for _, c := range all {
		c.Common().Rest(ctx, s.Mu)
	}
	if err := releaseAll(ctx, s.store.Run, s.Timeout, all, call, released); err != nil {
		return fmt.Errorf("%s: %w", s.store.Name, err)
	}
	return nil
}
