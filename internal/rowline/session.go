package rowline

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

// Config is what the sessions of a driver have in common.
type Config struct {
	Store   Store
	Ears    Ears // or Gates; nil where nobody can be told, so that claims which wait poll
	Gates   Gates
	Package string        // begins messages
	Timeout time.Duration // for one answer, at most the TTL
	MinTTL  time.Duration
	MaxName int // in bytes

	// Lineless: a claim that waits stands nowhere, so that a Renew does not reach it.
	Lineless bool
}

// Sessions are those of a driver.
type Sessions struct {
	Config
	all    sessions.Set[*Session]
	ctx    context.Context //nolint:containedctx // of what goes on in the background; ends with Close
	cancel context.CancelFunc

	mu      sync.Mutex
	leaving map[string][]*leaving // by the name of a line that a claim which waits is leaving
}

// New returns the sessions of a driver, which has none yet.
func New(c Config) *Sessions {
	d := &Sessions{Config: c, leaving: map[string][]*leaving{}}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// Open opens a session: see driver.Driver.
func (d *Sessions) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	if spec.TTL < d.MinTTL {
		return nil, fmt.Errorf("%s: TTL %v: want %v or more: %w", d.Package, spec.TTL, d.MinTTL, driver.ErrRefused)
	}
	if !validID(spec.ID) {
		return nil, fmt.Errorf("%s: session ID of %d bytes: want one as driver.NewID makes them: %w", d.Package, len(spec.ID), driver.ErrRefused)
	}
	spec.TTL = spec.TTL.Truncate(time.Microsecond)
	s := &Session{d: d, id: spec.ID, ttl: spec.TTL, timeout: min(d.Timeout, spec.TTL), claims: sessions.Claims[*Claim]{}}
	closed := fmt.Errorf("%s: %w: the driver is closed", d.Package, driver.ErrNotSent)
	if d.all.Closed() {
		return nil, closed
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	s.at = time.Now()
	clock, err := d.Store.Open(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("%s: open a session: %w", d.Package, err)
	}
	if !d.all.Add(s) { // closed meanwhile, without a session that was not there yet; where this fails, its time runs out
		_ = d.Store.Finish(ctx, s.id, nil)
		return nil, closed
	}
	s.clock = clock
	return s, nil
}

// Close closes all sessions, and does nothing but report false where it was called before.
func (d *Sessions) Close(ctx context.Context) (first bool, err error) {
	if first, err = d.all.Close(ctx); first {
		d.cancel()
	}
	return first, err
}

// Session is one row of the database, and what this process knows of its claims. It implements driver.Session and driver.Requeuer.
type Session struct {
	d       *Sessions
	id      string
	ttl     time.Duration
	timeout time.Duration

	mu     sync.Mutex
	claims sessions.Claims[*Claim]
	closed bool
	lost   bool      // the database knows it no more
	clock  int64     // the database's, when it answered a request
	at     time.Time // that was sent then
	began  time.Time // the last Renew
}

// Valid implements driver.Session: the TTL less a tenth, by which the last renewal may be old when an Acquire relies on it, and the
// drift between the database's clock and ours.
func (s *Session) Valid() time.Duration {
	return s.ttl - s.ttl/10 - s.ttl/100 - 2*time.Millisecond
}

// claim returns what is known of c, from now on at least its ID, or that it has no request but its Release from now on.
func (s *Session) claim(c driver.Claim, leaves bool) (*Claim, error) {
	if err := s.d.check(c); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := func() *Claim { return &Claim{Claim: c, s: s, change: sessions.NewSignal()} }
	switch over := s.closed || s.lost; {
	case leaves:
		return s.claims.Leaving(c.ID, over, fresh), nil
	case over:
		return nil, driver.ErrSessionLost
	}
	return s.claims.Of(c.ID, fresh), nil
}

// forget drops a claim that does not stand in the store any more, or never did. s.mu is held.
func (s *Session) forget(c *Claim) {
	if s.claims.Forget(c.ID, c) {
		c.unhear()
	}
}

// ends notes that the session is no more, with everything that it had. s.mu is held.
func (s *Session) ends() error {
	s.lost = true
	for _, c := range s.claims {
		c.end(Gone)
	}
	return driver.ErrSessionLost
}

// Renew implements driver.Session: one request for the session and for the state of all its claims.
func (s *Session) Renew(ctx context.Context) (driver.Renewal, error) {
	s.mu.Lock()
	if s.closed || s.lost {
		s.mu.Unlock()
		return driver.Renewal{}, driver.ErrSessionLost
	}
	var stuck []*Claim
	var known []Known
	var lost []driver.Loss
	for id, c := range s.claims {
		switch {
		case c.Leaving && !c.Left && c.Landing() == nil:
			stuck = append(stuck, c) // its Release had no answer, and perhaps nobody repeats it
		case c.Leaving || c.state == Out:
		case c.state >= Broken:
			lost = append(lost, c.loss())
		default:
			known = append(known, Known{ID: id, Name: c.Name, Held: c.state == Held})
		}
	}
	started := time.Now()
	s.began = started // in the same moment at which the claims are looked at
	s.mu.Unlock()
	for _, c := range stuck {
		go func() { _, _ = s.release(s.d.ctx, c) }()
	}

	timeout := s.timeout
	if end, ok := ctx.Deadline(); ok {
		timeout = max(min(timeout, time.Until(end)), time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	clock, changed, err := s.d.Store.Renew(ctx, s.id, known, timeout/2)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case errors.Is(err, driver.ErrSessionLost):
		return driver.Renewal{}, s.ends()
	case err != nil:
		return driver.Renewal{}, fmt.Errorf("%s: renew: %w", s.d.Package, err)
	case clock != 0 && started.After(s.at):
		s.at, s.clock = started, clock
	}
	for id, a := range changed {
		c := s.claims[id]
		switch {
		case c == nil || c.Leaving:
		case a.State == Waiting:
			c.schedule(a)
		case a.State == Held:
			c.admit(a.Fence)
		default:
			c.end(a.State)
			lost = append(lost, c.loss())
		}
	}
	return driver.Renewal{Valid: s.Valid(), Lost: lost}, nil
}

// Close implements driver.Session: one request leaves every line and ends the session.
func (s *Session) Close(ctx context.Context) error {
	if s.d.all.Closed() {
		return nil // with its driver
	}
	s.mu.Lock()
	s.closed = true
	all := s.claims.AllLeaving()
	s.mu.Unlock()
	names := make([]string, 0, len(all))
	for _, c := range all {
		c.Rest(ctx, &s.mu) // a request under way may put it into the line
		names = append(names, c.Name)
	}
	slices.Sort(names)
	ctx, cancel := context.WithTimeout(ctx, s.d.Timeout)
	defer cancel()
	err := s.d.Store.Finish(ctx, s.id, slices.Compact(names))
	s.mu.Lock()
	for _, c := range all {
		c.Left = c.Left || err == nil
		c.end(Gone)
		s.forget(c)
	}
	s.mu.Unlock()
	s.d.all.Remove(s)
	if err != nil {
		return fmt.Errorf("%s: close a session: %w", s.d.Package, err)
	}
	return nil
}
