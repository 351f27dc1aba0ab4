package shedlock

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// Driver keeps locks in ShedLock's table. It is safe for concurrent use.
type Driver struct {
	db      *sql.DB
	owned   bool // it was opened by URL
	options Options
	dialect *dialect
	simple  []any

	longest int           // name, in characters
	ascii   bool          // and those of ASCII alone
	unit    time.Duration // of the times in the table
	safe    bool          // what is committed is on the disk

	clock    atomic.Pointer[clock]
	sessions sessions.Set[*session]
}

// New returns a driver over a database that has the table. The database's client is pgx (its package stdlib) or go-sql-driver/mysql, or another
// one whose dialect the options tell. The database stays open whatever becomes of the driver.
func New(ctx context.Context, db *sql.DB, o *Options) (*Driver, error) {
	d := &Driver{db: db}
	err := d.configure(o)
	if err == nil {
		err = d.inspect(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("shedlock: %w", err)
	}
	return d, nil
}

// Traits implements driver.Driver.
func (d *Driver) Traits() driver.Traits {
	return driver.Traits{
		Expires: true, MinTTL: max(minTTL, 10*d.unit), Grain: 2*latest + d.unit.Truncate(latest),
		Survives: driver.Survival{Process: true, Restart: true, Machine: d.safe},
	}
}

// Who waits looks again between soonest and latest.
const (
	minTTL          = 100 * time.Millisecond
	soonest, latest = 10 * time.Millisecond, 250 * time.Millisecond
)

// Open implements driver.Driver. Nothing stands in the table for a session, so it only looks whether that answers.
func (d *Driver) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	if least := d.Traits().MinTTL; spec.TTL < least {
		return nil, fmt.Errorf("shedlock: TTL %v: want %v or more: %w", spec.TTL, least, driver.ErrRefused)
	}
	s := &session{d: d, owner: spec.Owner, ttl: spec.TTL, timeout: min(d.options.Timeout, spec.TTL), claims: sessions.Claims[*claim]{}}
	if !d.sessions.Add(s) {
		return nil, errClosed
	}
	if _, err := d.rows(sessions.Within(ctx, s.timeout), none); err != nil {
		d.sessions.Remove(s)
		return nil, fmt.Errorf("shedlock: open a session: %w", err)
	}
	return s, nil
}

var errClosed = fmt.Errorf("shedlock: %w: the driver is closed", driver.ErrNotSent)

// Close implements driver.Driver.
func (d *Driver) Close(ctx context.Context) error {
	first, err := d.sessions.Close(ctx)
	if !first || !d.owned {
		return err
	}
	over := make(chan struct{})
	go func() { // it may wait for a connection that does not answer
		_ = d.db.Close()
		close(over)
	}()
	select {
	case <-over:
	case <-ctx.Done():
	}
	return err
}
