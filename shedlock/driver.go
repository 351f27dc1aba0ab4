package shedlock

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/lazyregexp"
	"github.com/interlock-go/interlock/internal/opening"
	"github.com/interlock-go/interlock/internal/rowline"
	"github.com/interlock-go/interlock/internal/sessions"
)

// Driver keeps locks in ShedLock's table. It is safe for concurrent use.
type Driver struct {
	table    *table
	sessions *rowline.Sessions
	owned    bool // the database was opened by URL
}

// Who waits looks again when the holder has it twice as long, but between soonest and latest.
const (
	minTTL          = 100 * time.Millisecond
	soonest, latest = 10 * time.Millisecond, 250 * time.Millisecond
)

// Options of a driver. The zero value is what most want.
type Options struct {
	// Table is ShedLock's; default "shedlock". It may have a schema or a database before it, with a
	// dot.
	Table string

	// Timeout is how long the server may take for one answer, at most the TTL of a session; default 3
	// s.
	Timeout time.Duration
}

var tableName = lazyregexp.New(`^([A-Za-z_][A-Za-z0-9_]*\.)?[A-Za-z_][A-Za-z0-9_]*$`)

// New returns a driver over a database that has the table. While no server can be reached it asks
// again, until ctx ends, or for 15 s where that has no deadline. The database stays open whatever
// becomes of the driver.
func New(ctx context.Context, db *sql.DB, o *Options) (*Driver, error) {
	return opening.Wait(ctx, func(ctx context.Context) (*Driver, error) { return newDriver(ctx, db, o) })
}

// newDriver is New by one try.
func newDriver(ctx context.Context, db *sql.DB, o *Options) (*Driver, error) {
	t := &table{db: db}
	if o != nil {
		t.options = *o
	}
	t.options.Table = cmp.Or(t.options.Table, "shedlock")
	t.options.Timeout = cmp.Or(max(t.options.Timeout, 0), 3*time.Second)
	if !tableName.MatchString(t.options.Table) {
		return nil, fmt.Errorf("shedlock: %w", refused("table %q: want letters, digits and _, and perhaps a schema or database and a dot before it", t.options.Table))
	}
	if _, ok := db.Driver().(*stdlib.Driver); ok {
		t.simple = []any{pgx.QueryExecModeSimpleProtocol} // which prepares nothing that a pooler would lose
	}
	if err := t.inspect(ctx); err != nil {
		if unknown(err) && !errors.Is(err, driver.ErrRefused) { // to ask changes nothing
			err = fmt.Errorf("%w: %w", driver.ErrNotSent, err)
		}
		return nil, fmt.Errorf("shedlock: %w", err)
	}
	d := &Driver{table: t}
	d.sessions = rowline.New(rowline.Config{Store: t, Package: "shedlock", Timeout: t.options.Timeout, MinTTL: d.Traits().MinTTL, MaxName: 4 * t.longest, Lineless: true})
	return d, nil
}

// Traits implements driver.Driver.
func (d *Driver) Traits() driver.Traits {
	return driver.Traits{
		Expires: true, MinTTL: max(minTTL, 10*d.table.unit), Grain: 2*latest + (3 * d.table.unit).Truncate(latest),
		Survives: driver.Survival{Process: true, Restart: d.table.kept > 0, Machine: d.table.kept > 1},
	}
}

// Open implements driver.Driver. There is no line, so that nobody stands in it again.
func (d *Driver) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	s, err := d.sessions.Open(ctx, spec)
	return struct{ driver.Session }{s}, err
}

// Close implements driver.Driver. A pool may wait for a connection that does not answer.
func (d *Driver) Close(ctx context.Context) error {
	first, err := d.sessions.Close(ctx)
	if first && d.owned {
		_ = sessions.Aside(ctx, 0, func(context.Context) error { return d.table.db.Close() })
	}
	return err
}
