package connlock

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// Sessions are the sessions of a driver. With what the server shows of their locks it implements
// driver.Inspector and driver.Watcher.
type Sessions struct {
	Config
	all sessions.Set[*Session]
}

// New returns the sessions of a driver that has none yet.
func New(c Config) *Sessions { return &Sessions{Config: c} }

// Open implements driver.Driver. The session is a driver.Requeuer unless the store is [Apart].
func (d *Sessions) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	if spec.TTL < d.MinTTL || spec.TTL > d.MaxTTL {
		return nil, fmt.Errorf("%s: TTL %v: want %v to %v: %w", d.Package, spec.TTL, d.MinTTL, d.MaxTTL, driver.ErrRefused)
	}
	spec.TTL = spec.TTL.Truncate(time.Millisecond)
	s := newSession(&d.Config, spec)
	s.onClose = func() { d.all.Remove(s) }
	if !d.all.Add(s) {
		return nil, fmt.Errorf("%s: %w: the driver is closed", d.Package, driver.ErrNotSent)
	}
	if err := s.open(ctx); err != nil {
		d.all.Remove(s)
		return nil, err
	}
	if s.apart != nil { // no transaction ends on a condition
		return s, nil
	}
	return Requeuer{s}, nil
}

// Close closes all sessions. It reports whether it was the first to do so.
func (d *Sessions) Close(ctx context.Context) (first bool, err error) { return d.all.Close(ctx) }
