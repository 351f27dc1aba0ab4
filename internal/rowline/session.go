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
	Store    Store
	Notifier Notifier // or Gates; without both, claims that wait poll
	Gates    Gates
	Package  string        // is the prefix of errors
	Timeout  time.Duration // for one answer, at most the TTL
	MinTTL   time.Duration
	MaxName  int // in bytes

	// Lineless: a claim that waits is not in the store, so that a Renew does not reach it.
	Lineless bool
}

// Sessions are those of a driver.
type Sessions struct {
	Config
	all    sessions.Set[*Session]
	ctx    context.Context //nolint:containedctx // of background work; ends with Close
	cancel context.CancelFunc
	batch  *batcher
}

// New returns Sessions without any.
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
	if !d.all.Add(s) { // closed meanwhile, and Close did not see it; if Finish fails, it expires
		_ = d.Store.Finish(ctx, s.id, nil)
		return nil, closed
	}
	s.clock = clock
	return s, nil
}

// Close closes all sessions. It reports whether this is the first call; later ones do nothing.
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
	lost   bool      // the database has no such session any more
	clock  int64     // the database's, in microseconds, by an answer
	at     time.Time // when the request of that answer was sent
	began  time.Time // when the last Renew began
}

// Valid implements driver.Session: the TTL less a tenth, which is how old the last renewal may be
// when an Acquire relies on it, and less the drift between the database's clock and ours.
func (s *Session) Valid() time.Duration {
	return s.ttl - s.ttl/10 - s.ttl/100 - 2*time.Millisecond
}

// claim returns the state of c, which it makes if there is none. If leaves is true the claim is
// marked as leaving: no request but its release is sent for it.
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

// forget drops a claim that is not in the store. The caller holds s.mu.
func (s *Session) forget(c *Claim) {
	if s.claims.Forget(c.ID, c) {
		c.unsubscribe()
	}
}

// expired marks the session and all its claims as lost, and returns the error that says so. The
// caller holds s.mu.
func (s *Session) expired() error {
	s.lost = true
	for _, c := range s.claims {
		c.end(Gone)
	}
	return driver.ErrSessionLost
}

// check returns an error for a claim that the store cannot keep.
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

// validID reports whether an ID is as driver.NewID makes them. Such an ID needs no quoting in SQL.
func validID(id string) bool {
	for _, c := range []byte(id) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return len(id) == 22
}
