package rowline

import (
	"context"
	"fmt"
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
	batch  *batcher
}

// New returns the sessions of a driver that has none yet.
func New(c Config) *Sessions {
	d := &Sessions{Config: c}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.batch = &batcher{ctx: d.ctx, store: c.Store, timeout: c.Timeout, queues: map[string][]*queued{}}
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

// Session is one row of the database, and what this process knows of its claims. It implements
// driver.Session and driver.Requeuer.
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

// Valid implements driver.Session: the TTL less a tenth, by which the last renewal may be old when
// an Acquire relies on it, and the drift between the database's clock and ours.
func (s *Session) Valid() time.Duration {
	return s.ttl - s.ttl/10 - s.ttl/100 - 2*time.Millisecond
}

// claim returns the state of c, which it makes if there is none. If leaves is true the claim is
// marked as leaving: no other request than its release is sent for it.
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

// forget drops a claim that is not in the store any more, or never was. s.mu is held.
func (s *Session) forget(c *Claim) {
	if s.claims.Forget(c.ID, c) {
		c.unhear()
	}
}

// expired marks the session and all its claims as lost, and returns the error that says so. s.mu is
// held.
func (s *Session) expired() error {
	s.lost = true
	for _, c := range s.claims {
		c.end(Gone)
	}
	return driver.ErrSessionLost
}

// check refuses a claim that cannot be kept.
func (d *Sessions) check(c driver.Claim) error {
	switch {
	case !validID(c.ID):
		return fmt.Errorf("%s: claim ID of %d bytes: want one as driver.NewID makes them: %w", d.Package, len(c.ID), driver.ErrRefused)
	case c.Name == "" || len(c.Name) > d.MaxName:
		return fmt.Errorf("%s: name of %d bytes: want 1 to %d: %w", d.Package, len(c.Name), d.MaxName, driver.ErrName)
	case c.Weight < 1 || c.Limit < c.Weight || c.Limit > driver.All:
		return fmt.Errorf("%s: a claim of weight %d under limit %d: want 1 ≤ weight ≤ limit ≤ %d: %w", d.Package, c.Weight, c.Limit, driver.All, driver.ErrRefused)
	}
	return nil
}

// validID reports whether an ID is as driver.NewID makes them: such a one means nothing in SQL.
func validID(id string) bool {
	for _, c := range []byte(id) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return len(id) == 22
}
