package mysqllock

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/examine/database"
	"github.com/interlock-go/interlock/internal/opening"
	"github.com/interlock-go/interlock/internal/rowline"
	"github.com/interlock-go/interlock/internal/sessions"
)

// Driver is a MariaDB or MySQL as a store of locks. It is safe for concurrent use.
type Driver struct {
	db       *sql.DB
	owned    bool   // db was opened for this driver
	gates    *gates // nil where connections of our own cannot be made, so that claims which wait ask
	options  Options
	flush    int // the server's innodb_flush_log_at_trx_commit
	sessions *rowline.Sessions
}

const (
	minTTL  = 100 * time.Millisecond
	grain   = 50 * time.Millisecond // of the look at a claim that has run out
	maxName = 1024
	most    = 16 // requests at once of a driver that dials for itself, beside the waits: the server has other users
)

// New makes a driver over a pool that the program has, by the client github.com/go-sql-driver/mysql. It looks whether the tables are there,
// in a version that it knows, and logs what locks could lose by the server's settings. While no server can be reached it asks again, until ctx
// ends, or for 15 s where that has no deadline. The pool is the program's, whatever becomes of the driver.
//
// Claims that wait ask, and technique session is refused, since no connection of the pool is kept: see [NewConnector].
func New(ctx context.Context, db *sql.DB, o *Options) (driver.Driver, error) {
	return opening.Wait(ctx, func(ctx context.Context) (driver.Driver, error) { return start(ctx, db, nil, o) })
}

// NewConnector makes a driver that dials for itself, by a connector of the client github.com/go-sql-driver/mysql, and otherwise is as New
// has it. It has a connection for what it holds and one for each claim that waits, and is told when that may be held.
func NewConnector(ctx context.Context, c sqldriver.Connector, o *Options) (driver.Driver, error) {
	return opening.Wait(ctx, func(ctx context.Context) (driver.Driver, error) { return dialling(ctx, c, o) })
}

// dialling is NewConnector by one try.
func dialling(ctx context.Context, c sqldriver.Connector, o *Options) (driver.Driver, error) {
	db := sql.OpenDB(c)
	db.SetMaxIdleConns(most) // of two, those who ask or wait at once would dial again and again
	db.SetConnMaxIdleTime(time.Minute)
	d, err := start(ctx, db, c, o)
	if err != nil {
		_ = db.Close()
	}
	return d, err
}

// start makes a driver. Where it dials for itself the pool is its own.
func start(ctx context.Context, db *sql.DB, c sqldriver.Connector, o *Options) (driver.Driver, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	d := &Driver{db: db, owned: c != nil, options: options}
	if d.owned {
		db.SetMaxOpenConns(most + options.MaxWaiting + 1)
	}
	d.sessions = rowline.New(rowline.Config{Store: rows{d}, Package: "mysqllock", Timeout: options.Timeout, MinTTL: minTTL, MaxName: maxName})
	if err := d.inspect(ctx); err != nil {
		_, _ = d.sessions.Close(ctx)
		return nil, fmt.Errorf("mysqllock: %w", unchanged(err))
	}
	if options.Technique == "session" || options.Technique == "rowlock" {
		return newConnDriver(ctx, d, c)
	}
	if d.owned {
		d.keep(ctx)
	}
	return d, nil
}

// unchanged is the error of a look: what had no answer has changed nothing.
func unchanged(err error) error {
	if unknown(err) && !errors.Is(err, driver.ErrNotSent) && !errors.Is(err, driver.ErrRefused) && !errors.Is(err, errNothing) {
		return fmt.Errorf("%w: %w", driver.ErrNotSent, err)
	}
	return err
}

// unfit finds the settings by which a server is not to have locks. Not every server has all.
const unfit = "show global variables where variable_name in ('read_only', 'innodb_read_only') and value <> 'OFF' or variable_name = 'wsrep_on' and value = 'ON' " +
	"or variable_name = 'group_replication_single_primary_mode' and value = 'OFF'"

// keep has claims that wait be told, where the server has what that takes.
func (d *Driver) keep(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, d.options.Timeout)
	defer cancel()
	g := &gates{d: d, places: make(chan struct{}, d.options.MaxWaiting), of: map[string]*gate{}}
	if err := g.check(ctx); err != nil {
		g.close()
		d.options.Logger.Warn("mysqllock: claims that wait ask instead of being told", "error", err)
		return
	}
	d.gates, d.sessions.Gates = g, g
}

// inspect looks at the server and at the tables, in a transaction that it ends: without autocommit a look begins one.
func (d *Driver) inspect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, d.options.Timeout)
	defer cancel()
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return classify(unconnected{err}, &d.options)
	}
	defer func() { _ = tx.Rollback() }()
	settings, err := results(ctx, tx, unfit)
	if err != nil {
		return classify(err, &d.options)
	}
	for _, f := range settings {
		switch name := string(f[0]); name {
		case "wsrep_on", "group_replication_single_primary_mode":
			return fmt.Errorf("%w: %s is %s: the server is a node of a Galera cluster or of a group with several primaries, where a row that is locked on one node is not on another: want a server that alone writes",
				driver.ErrRefused, name, f[1])
		default:
			return &driver.FindingError{Finding: database.ReadOnly(), Err: fmt.Errorf("%w: the server is read-only: want its primary", driver.ErrNotSent)}
		}
	}
	all, err := results(ctx, tx, "select @@innodb_flush_log_at_trx_commit, (select min(version) from "+d.options.Prefix+"version), @@completion_type, timestampdiff(second, now(), sysdate())")
	switch {
	case err != nil:
		return classify(err, &d.options)
	case len(all) == 0:
		return errNothing
	}
	f := all[0]
	if err := d.options.knows(integer(f[1])); err != nil {
		return err
	}
	switch lag := time.Duration(integer(f[3])) * time.Second; {
	case string(f[2]) != "NO_CHAIN":
		return fmt.Errorf("%w: completion_type is %s, by which a COMMIT begins another transaction or ends the connection: want NO_CHAIN", driver.ErrRefused, f[2])
	case lag.Abs() > d.options.Timeout+time.Second: // it has waited for less
		return fmt.Errorf("%w: the connection has a timestamp of its own, and time stands still for it: want none in the data source name", driver.ErrRefused)
	}
	switch d.flush = int(integer(f[0])); d.flush {
	case 0:
		d.options.Logger.Warn("mysqllock: innodb_flush_log_at_trx_commit is 0: a server that crashes can lose locks of the last second; set 1")
	case 2:
		d.options.Logger.Warn("mysqllock: innodb_flush_log_at_trx_commit is 2: a machine that crashes can lose locks of the last second; set 1")
	}
	return nil
}

// Traits implements driver.Driver.
func (d *Driver) Traits() driver.Traits {
	var told driver.Kinds
	if d.gates != nil {
		told = driver.KindsOf(driver.Mutex, driver.Write)
	}
	return driver.Traits{
		Ordered: true, Shared: true, Counted: true, Mixed: true, Events: told, Expires: true,
		Fence: driver.Durable, MinTTL: minTTL, Grain: grain,
		Survives: driver.Survival{Process: true, Restart: d.flush != 0, Machine: d.flush == 1},
	}
}

// Open implements driver.Driver.
func (d *Driver) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	return d.sessions.Open(ctx, spec)
}

// Close implements driver.Driver.
func (d *Driver) Close(ctx context.Context) error {
	first, err := d.sessions.Close(ctx)
	if first && d.owned {
		_ = sessions.Aside(ctx, 0, func(context.Context) error {
			if d.gates != nil {
				d.gates.close()
			}
			return d.db.Close()
		}) // a request may hold a connection that does not answer
	}
	return err
}
