package memlock

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

func init() { driver.Register("mem", open) }

var (
	namedMu sync.Mutex
	named   = map[string]*store{}
)

func open(_ context.Context, u *url.URL) (driver.Driver, error) {
	if err := driver.NewParams(u).Err(); err != nil {
		return nil, err
	}
	name := u.Opaque
	if u.Host != "" || u.Path != "" {
		return nil, fmt.Errorf("memlock: cannot open %s: want mem: or mem:NAME", driver.Redact(u.String()))
	}
	if name == "" {
		return New(), nil
	}
	namedMu.Lock()
	defer namedMu.Unlock()
	if named[name] == nil {
		named[name] = newStore(Personality{})
	}
	return &Driver{store: named[name]}, nil
}

// Driver is a store in this process. It is safe for concurrent use.
type Driver struct {
	store *store
	wire  wire
}

// New returns an empty store.
func New() *Driver { return NewPersonality(Personality{}) }

// NewPersonality returns an empty store that is worse in the ways that p says.
func NewPersonality(p Personality) *Driver { return &Driver{store: newStore(p)} }

// Share returns another driver on the same store, as another process would have it: closing, stalling or failing one
// leaves the other as it is.
func (d *Driver) Share() *Driver { return &Driver{store: d.store} }

// Traits implements driver.Driver.
func (d *Driver) Traits() driver.Traits { return d.store.personality.traits() }

// Open implements driver.Driver.
func (d *Driver) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	if err := d.wire.send(ctx); err != nil {
		return nil, err
	}
	p := d.store.personality
	t := p.traits()
	if spec.TTL < t.MinTTL || spec.TTL > t.MaxTTL {
		return nil, fmt.Errorf("memlock: TTL %v is not between %v and %v: %w", spec.TTL, t.MinTTL, t.MaxTTL, driver.ErrRefused)
	}
	ttl := p.grant(spec.TTL)
	s := &session{
		driver: d, store: d.store, spec: spec, ttl: ttl, places: map[string]*place{}, renewed: time.Now(),
		done: make(chan struct{}), lost: make(chan driver.Loss), losing: make(chan struct{}, 1), nudge: make(chan struct{}, 1),
	}
	d.store.mu.Lock()
	d.store.sessions[spec.ID] = s
	d.store.mu.Unlock()
	return s, d.wire.receive(ctx)
}

// Close implements driver.Driver: it ends the sessions that this driver opened.
func (d *Driver) Close(context.Context) error {
	d.EndSessions()
	return nil
}
