package pglock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/opening"
	"github.com/interlock-go/interlock/internal/rowline"
	"github.com/interlock-go/interlock/internal/sessions"
)

var errClosed = fmt.Errorf("pglock: %w: the driver is closed", driver.ErrNotSent)

// Driver is a PostgreSQL as a store of locks by technique rows. It is safe for concurrent use.
type Driver struct {
	source
	owned   bool // the source was opened for this driver
	options Options
	in      string      // begins names in SQL
	channel string      // that this process is told by
	safe    bool        // the server flushes what it commits
	strict  atomic.Bool // the default isolation level is not that of a step
	turn    prepared    // a step of a line

	unprepared atomic.Bool // nothing is prepared, which a pooler that shares connections would lose

	ctx    context.Context //nolint:containedctx // of what goes on in the background; ends with Close
	cancel context.CancelFunc

	sessions *rowline.Sessions
	ears     ears
}

// New makes a driver over a pool that the program has. It looks whether the tables are there, in a version that it knows, and
// logs what locks could lose by the server's settings. While no server can be reached it asks again, until ctx ends, or for 15 s where that has
// no deadline. The pool is the program's, whatever becomes of the driver.
func New(ctx context.Context, pool *pgxpool.Pool, o *Options) (driver.Driver, error) {
	return opening.Wait(ctx, func(ctx context.Context) (driver.Driver, error) { return newDriver(ctx, poolSource{pool}, o) })
}

// NewSQL is [New] for package database/sql. By pgx's client it does what New does, at more cost. Of another one, as lib/pq, nobody knows how
// to make connections: technique rows then asks instead of being told, and the others are refused, unless Options.Listen names the server.
func NewSQL(ctx context.Context, db *sql.DB, o *Options) (driver.Driver, error) {
	return opening.Wait(ctx, func(ctx context.Context) (driver.Driver, error) { return newDriver(ctx, dbSource{db}, o) })
}

// newDriver is New by one try.
func newDriver(ctx context.Context, from source, o *Options) (driver.Driver, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	d := &Driver{
		source: from, options: options, in: options.in(), channel: "il_" + driver.NewID(),
		turn: prepare("select " + options.in() + "turn($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"),
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	ctx, cancel := context.WithTimeout(ctx, options.Timeout)
	defer cancel()
	if options.Technique == "session" || options.Technique == "rowlock" {
		return newConnDriver(ctx, d)
	}
	d.sessions = rowline.New(rowline.Config{Store: rows{d}, Package: "pglock", Timeout: options.Timeout, MinTTL: minTTL, MaxName: maxName})
	d.ears = ears{d: d, waiting: map[string]*rowline.Claim{}}
	if err := d.inspect(ctx); err != nil {
		d.cancel()
		return nil, fmt.Errorf("pglock: %w", unchanged(err))
	}
	return d, nil
}

// unchanged is the error of a look: what had no answer has changed nothing.
func unchanged(err error) error {
	if unknown(err) && !errors.Is(err, driver.ErrNotSent) && !errors.Is(err, driver.ErrRefused) {
		return fmt.Errorf("%w: %w", driver.ErrNotSent, err)
	}
	return err
}

// inspect looks at the server and at the tables.
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
		if err := d.ears.proves(ctx); err != nil {
			d.options.Logger.Warn("pglock: claims that wait ask instead of being told", "error", err)
			return nil
		}
	}
	d.sessions.Ears = &d.ears
	return nil
}

// flushes takes in the settings fsync and full_page_writes.
func (d *Driver) flushes(sync, pages []byte) {
	if d.safe = string(sync) == "on" && string(pages) == "on"; !d.safe {
		d.options.Logger.Warn("pglock: fsync or full_page_writes is off: a machine that crashes can lose locks and tokens, or the database")
	}
}

// Traits implements driver.Driver.
func (d *Driver) Traits() driver.Traits {
	return driver.Traits{
		Ordered: true, Shared: true, Counted: true, Mixed: true, Events: d.events(), Expires: true,
		Fence: driver.Durable, MinTTL: minTTL, Grain: grain,
		Survives: driver.Survival{Process: true, Restart: true, Machine: d.safe},
	}
}

// events are of all kinds, where we can be told.
func (d *Driver) events() driver.Kinds {
	if d.sessions.Ears != nil {
		return driver.AllKinds
	}
	return 0
}

const (
	minTTL = 100 * time.Millisecond
	grain  = 50 * time.Millisecond // of the look at a claim that has run out
)

// Open implements driver.Driver.
func (d *Driver) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	return d.sessions.Open(ctx, spec)
}

// Close implements driver.Driver.
func (d *Driver) Close(ctx context.Context) error {
	first, err := d.sessions.Close(ctx)
	if !first {
		return nil
	}
	d.cancel()
	_ = sessions.Aside(ctx, 0, func(context.Context) error { // a request may hold a connection that does not answer
		d.ears.rest()
		if d.owned {
			d.source.close()
		}
		return nil
	})
	return err
}
