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

// Session is one liveness: the TTL of all its claims. The server knows nothing of it. It has what the
// sessions of all layouts do alike; a layout's own embeds it.
type Session[C Member] struct {
	sessions.Alarm

	TTL     time.Duration
	TTLMS   string        // TTL in ms, for scripts
	KeepMS  string        // how long what stands beside a name outlives its last visitor, in ms
	Timeout time.Duration // of one request, at most TTL
	Owner   []byte        // encoded once

	Mu     *sync.Mutex // guards what follows, and what is known of each claim
	Claims sessions.Claims[C]
	Closed bool

	store  *Store
	layout Layout[C]
}

// Layout is what a Session asks of its layout.
type Layout[C Member] struct {
	Check func(driver.Claim) error // refuses a claim that the layout cannot keep
	Claim func(driver.Claim) C     // makes a claim; Mu is held
	Drop  func(C)                  // hears of a claim that is forgotten; nil: nobody does; Mu is held
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

// Claim returns what is known of c, from now on at least its ID.
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

// Leaving returns what is known of c, which is sent no request but its Release from now on.
func (s *Session[C]) Leaving(c driver.Claim) (member C, err error) {
	if err := s.layout.Check(c); err != nil {
		return member, err
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.Claims.Leaving(c.ID, s.Closed, func() C { return s.layout.Claim(c) }), nil
}

// Standing returns the names of the claims that hold or wait.
func (s *Session[C]) Standing() []string {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	var names []string
	for _, member := range s.Claims {
		if c := member.Common(); c.Stands() {
			names = append(names, c.Name)
		}
	}
	return names
}

// Call makes one call for c, after the one before is over: see sessions.Flight.
func (s *Session[C]) Call(ctx context.Context, c C, call func(ctx context.Context, c C) error) error {
	return c.Common().Fly(ctx, s.Mu, s.store.Conn.Abandons(), s.Timeout, func(ctx context.Context) error { return call(ctx, c) })
}

// Acquire makes the call that puts the claim there, or asks for its state.
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

// Answer returns the claim's state, unless err says that nothing is known. A claim that surely does
// not stand in the store is forgotten.
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

// forget drops a claim that does not stand in the store any more, or never did. Mu is held.
func (s *Session[C]) forget(c C) {
	if s.Claims.Forget(c.Common().ID, c) && s.layout.Drop != nil {
		s.layout.Drop(c)
	}
}

// Resend is the Again of a request by which c may come to stand in the store. It is sent once more,
// unless c has gone meanwhile: it would stand there for nobody. A Release waits until that is over. The
// first request may arrive even after the Release, which is what Doubt says.
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

// Failed records that a request for c failed: unless nothing was done, it may still be carried out.
func (s *Session[C]) Failed(member C, err error) error {
	if !nothingDone(err) {
		s.Mu.Lock()
		member.Common().Doubt = true
		s.Mu.Unlock()
	}
	return fmt.Errorf("%s: %w", s.store.Name, err)
}

// Release makes the call that takes the claim out, and reports whether it was held until then.
func (s *Session[C]) Release(ctx context.Context, dc driver.Claim, leave func(ctx context.Context, c C) error) (bool, error) {
	c, err := s.Leaving(dc)
	if err != nil {
		return false, err
	}
	return c.Common().Release(ctx, s.Mu, s.store.Conn.Abandons(), s.Timeout, func(ctx context.Context) error { return leave(ctx, c) })
}

// Undecided is the error of a Release of which nobody knows whether it was carried out.
func (s *Session[C]) Undecided(c C, err error) error {
	return fmt.Errorf("%s: release %q: %w", s.store.Name, c.Common().Name, err)
}

// Gone records that the claim has left the store. Mu is held.
func (s *Session[C]) Gone(member C, wasHeld bool) {
	c := member.Common()
	if !c.Left {
		c.Left, c.Was = true, wasHeld
		c.End(Gone)
		s.forget(member)
	}
}

// Close takes all claims out together: call makes the call for one, and left is told the answer. A call
// under way may still put a claim there, so it comes first.
func (s *Session[C]) Close(ctx context.Context, call func(C) redisconn.Call, left func(c C, value any)) error {
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
	if err := leaveAll(ctx, s.store.Run, s.Timeout, all, call, left); err != nil {
		return fmt.Errorf("%s: %w", s.store.Name, err)
	}
	return nil
}
