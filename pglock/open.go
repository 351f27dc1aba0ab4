package pglock

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/connlock"
	"github.com/interlock-go/interlock/internal/opening"
)

// New makes a driver over a pool that the program has. It checks that the tables are there, in a
// version that it knows, and logs which settings of the server can lose locks. While no server can
// be reached it tries again, until ctx ends, or for 15 s where that has no deadline. The pool is
// the program's, whatever becomes of the driver.
func New(ctx context.Context, pool *pgxpool.Pool, o *Options) (driver.Driver, error) {
	return opening.Wait(ctx, func(ctx context.Context) (driver.Driver, error) { return newDriver(ctx, poolSource{pool}, o) })
}

// NewSQL is [New] for package database/sql. With pgx's driver it does what New does, at more cost.
// With another one, such as lib/pq, it cannot make connections of its own: technique rows then
// polls, and the others are refused, unless Options.Listen names the server.
func NewSQL(ctx context.Context, db *sql.DB, o *Options) (driver.Driver, error) {
	return opening.Wait(ctx, func(ctx context.Context) (driver.Driver, error) { return newDriver(ctx, dbSource{db}, o) })
}

// newDriver is New by one try.
func newDriver(ctx context.Context, from source, o *Options) (driver.Driver, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	tables := newTables(newServer(from, options))
	ctx, cancel := context.WithTimeout(ctx, options.Timeout)
	defer cancel()
	var d driver.Driver = tables
	if options.Technique == "session" || options.Technique == "rowlock" {
		d, err = newConnDriver(ctx, tables)
	} else {
		err = tables.inspect(ctx)
	}
	if err != nil {
		tables.cancel()
		return nil, fmt.Errorf("pglock: %w", unchanged(err))
	}
	return d, nil
}

// inspect checks the server and the tables.
func (d *Driver) inspect(ctx context.Context) error {
	a, err := d.send(ctx, message{sql: "select pg_is_in_recovery(), current_setting('fsync'), current_setting('full_page_writes'), pg_backend_pid(), " +
		"(select min(version) from " + d.in + "version)"})
	if err != nil {
		return err
	}
	f := a.rows[0]
	_, straight := d.source.(poolSource)
	d.unprepared.Store(!straight || number(f[3]) != a.greeted)
	if string(f[0]) == "t" {
		return errStandby()
	}
	if err := d.options.knows(number(f[4])); err != nil {
		return err
	}
	d.flushes(f[1], f[2])
	if d.options.Listen != nil || number(f[3]) != a.greeted {
		if err := d.notifier.prove(ctx); err != nil {
			d.options.Logger.Warn("pglock: claims that wait ask instead of being told", "error", err)
			return nil
		}
	}
	d.sessions.Notifier = &d.notifier
	return nil
}

// newConnDriver makes the driver of a technique by which locks live with connections.
func newConnDriver(ctx context.Context, of *Driver) (*connDriver, error) {
	d := &connDriver{base: base{of}, rows: of.options.Technique == "rowlock"}
	var store connlock.Store = d
	if d.rows {
		store = rowStore{d}
	}
	d.Sessions = connlock.New(connlock.Config{
		Store: store, Package: "pglock", Technique: d.options.Technique, Timeout: d.options.Timeout, MinTTL: minTTL, MaxTTL: maxTTL,
		MaxWaiting: d.options.MaxWaiting, Instead: ", or use technique rows",
	})
	d.key, _ = convention(d.options.Keys) // looked at before
	if err := d.survey(ctx); err != nil {
		return nil, err
	}
	if d.rows {
		d.technique = rowlock{d.server}.technique()
	} else {
		of := newAdvisory(d.token())
		d.technique, d.hand = of.technique(&d.options), of.hand
	}
	if !d.fence {
		d.options.Logger.Warn("pglock: there is no sequence " + d.in + "token, so locks have no tokens: make it with interlock migrate")
	}
	return d, nil
}

// survey checks the server, and whether a connection of ours keeps its backend.
func (d *connDriver) survey(ctx context.Context) error {
	first, f, err := d.dial(ctx, "select pg_backend_pid(), pg_is_in_recovery(), current_setting('server_version_num')::int >= 140000, to_regclass('"+d.in+"token') is not null, "+
		"current_setting('fsync'), current_setting('full_page_writes')")
	if err != nil {
		return err
	}
	defer func() { _ = first.Close(ctx) }()
	d.fence = string(f[3]) == "t"
	switch {
	case string(f[1]) == "t":
		return errStandby()
	case string(f[2]) != "t":
		return fmt.Errorf("%w: technique %s needs PostgreSQL 14, which ends idle connections: use technique rows", driver.ErrRefused, d.options.Technique)
	case d.rows && !d.fence:
		return &driver.FindingError{Finding: d.options.absent(), Err: fmt.Errorf("%w: there is no sequence token, and perhaps no table held, in %s: make them with interlock migrate --store URL, or pglock.Migrate",
			driver.ErrRefused, d.options.where())}
	}
	if d.fence {
		v, err := row(ctx, first, "select min(version) from "+d.in+"version")
		if err != nil {
			return classify(err, &d.options)
		}
		if err := d.options.knows(number(v[0])); err != nil {
			return err
		}
	}
	if d.options.Listen != nil {
		if err := d.same(ctx, first); err != nil {
			return err
		}
	}
	d.flushes(f[4], f[5])
	d.pooled = number(f[0]) != int64(first.PgConn().PID())
	return d.keeps(ctx, first)
}
