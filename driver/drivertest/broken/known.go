package broken

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// find returns a claim of the line by its public id.
func find(line driver.Line, publicID string) (driver.Holder, bool) {
	for _, h := range line.Claims {
		if h.PublicID == publicID {
			return h, true
		}
	}
	return driver.Holder{}, false
}

// stale reports whether nobody has renewed the session for its time.
type stale struct {
	mu      sync.Mutex
	renewed map[*session]time.Time
}

func (k *stale) note(s *session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.renewed == nil {
		k.renewed = map[*session]time.Time{}
	}
	k.renewed[s] = time.Now()
}

func (k *stale) is(s *session) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Since(k.renewed[s]) >= s.Session.Valid()
}

func (k *stale) renew(s *session, ctx context.Context) (driver.Renewal, error) { //nolint:revive // in the order of a fault
	r, err := s.Session.Renew(ctx)
	if err == nil {
		k.note(s)
	}
	return r, err
}

// owned knows the claims of all sessions by their public ids.
type owned struct {
	mu     sync.Mutex
	claims map[string]driver.Claim
	of     map[string]*session
	since  map[string]time.Time
}

func (o *owned) keep(s *session, c driver.Claim) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.claims == nil {
		o.claims, o.of, o.since = map[string]driver.Claim{}, map[string]*session{}, map[string]time.Time{}
	}
	id := driver.PublicID(c.ID)
	o.claims[id], o.of[id] = c, s
	if o.since[id].IsZero() {
		o.since[id] = time.Now()
	}
}

func (o *owned) acquire(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) { //nolint:revive // in the order of a fault
	o.keep(s, c)
	return s.acquire(ctx, c)
}

func (o *owned) claim(publicID string) (c driver.Claim, s *session, since time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.claims[publicID], o.of[publicID], o.since[publicID]
}

// oneOf answers true to the first question for a key.
type oneOf struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (o *oneOf) first(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen == nil {
		o.seen = map[string]bool{}
	}
	was := o.seen[key]
	o.seen[key] = true
	return !was
}

// ended returns a context that has ended.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// gone is a claim that is lost because it is gone.
func gone(id string) driver.Loss { return driver.Loss{ID: id, Err: driver.ErrGone} }

// names reports whether r names a claim as lost.
func names(r driver.Renewal, id string) bool {
	return slices.ContainsFunc(r.Lost, func(l driver.Loss) bool { return l.ID == id })
}
