package mysqllock

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/connlock"
	"github.com/interlock-go/interlock/internal/examine/database"
	"github.com/interlock-go/interlock/internal/opening"
	"github.com/interlock-go/interlock/internal/rowline"
)

// New makes a driver over a pool that the program has, by the client
// github.com/go-sql-driver/mysql. It looks whether the tables are there, in a version that it
// knows, and logs what locks could lose by the server's settings. While no server can be reached it
// asks again, until ctx ends, or for 15 s where that has no deadline. The pool is the program's,
// whatever becomes of the driver.
//
// Claims that wait ask, and technique session is refused, since no connection of the pool is kept:
// see [NewConnector].
func New(ctx context.Context, db *sql.DB, o *Options) (driver.Driver, error) {
	return opening.Wait(ctx, func(ctx context.Context) (driver.Driver, error) { return start(ctx, db, nil, o) })
}

// NewConnector makes a driver that dials for itself, by a connector of the client
// github.com/go-sql-driver/mysql, and otherwise is as New has it. It has a connection for what it
// holds and one for each claim that waits, so that claims need not poll.
func NewConnector(ctx context.Context, c sqldriver.Connector, o *Options) (driver.Driver, error) {
	return opening.Wait(ctx, func(ctx context.Context) (driver.Driver, error) { return dialling(ctx, c, o) })
}

// dialling is NewConnector, by one try.
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

// start makes a driver. If it dials for itself the pool is its own.
func start(ctx context.Context, db *sql.DB, c sqldriver.Connector, o *Options) (driver.Driver, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &server{db: db, options: options}
	d := &Driver{server: s, owned: c != nil}
	if d.owned {
		db.SetMaxOpenConns(most + options.MaxWaiting + 1)
	}
	d.sessions = rowline.New(rowline.Config{Store: rows{s}, Package: "mysqllock", Timeout: options.Timeout, MinTTL: minTTL, MaxName: maxName})
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

// unfit lists the settings with which a server cannot keep locks. Not every server has all of them.
const unfit = "show global variables where variable_name in ('read_only', 'innodb_read_only') and value <> 'OFF' or variable_name = 'wsrep_on' and value = 'ON' " +
	"or variable_name = 'group_replication_single_primary_mode' and value = 'OFF'"

// keep starts the gates, if the server has what they take.
func (d *Driver) keep(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, d.options.Timeout)
	defer cancel()
	g := newGates(d.db, d.options.Timeout, d.options.MaxWaiting)
	if err := g.check(ctx); err != nil {
		g.close()
		d.options.Logger.Warn("mysqllock: claims that wait ask instead of being told", "error", err)
		return
	}
	d.gates, d.sessions.Gates = g, rows{d.server}
}

// inspect checks the server and the tables. It does so in a transaction, which it ends: without
// autocommit a query would begin one.
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

// newConnDriver makes the driver of a technique by which locks live with connections.
func newConnDriver(ctx context.Context, of *Driver, c sqldriver.Connector) (driver.Driver, error) {
	d := &connDriver{base: base{of}, connector: c, rows: of.options.Technique == "rowlock"}
	config := connlock.Config{
		Store: d, Package: "mysqllock", Technique: d.options.Technique, Timeout: d.options.Timeout, MinTTL: minTTL, MaxTTL: maxTTL,
		MaxWaiting: d.options.MaxWaiting, Instead: ", or use technique rows",
	}
	if d.rows {
		config.Store = rowStore{d}
	}
	d.Sessions = connlock.New(config)
	d.key, _ = convention(d.options.Keys) // looked at before
	if err := d.survey(ctx); err != nil {
		return nil, fmt.Errorf("mysqllock: %w", unchanged(err))
	}
	return d, nil
}

// survey checks the server.
func (d *connDriver) survey(ctx context.Context) error {
	if d.connector == nil {
		return fmt.Errorf("%w: technique %s keeps connections, and those of a pool are the program's: open the store by its URL, or by NewConnector", driver.ErrRefused, d.options.Technique)
	}
	a, err := d.send(ctx, fmt.Sprintf("select database(), (select count(*) from information_schema.tables where table_schema = database() and table_name = '%stoken' and table_type = 'SEQUENCE')", d.options.Prefix), "")
	if err != nil {
		return err
	}
	prefix := d.options.Prefix
	d.place = place{prefix, string(a.rows[0][0])}
	if d.rows {
		d.technique = rowlock(prefix).technique()
	} else {
		d.technique = getlock{prefix, string(a.rows[0][1]) == "1"}.technique()
	}
	d.technique.Classify = func(err error) error { return classify(err, &d.options) }
	if a, err = d.send(ctx, "show global variables where variable_name = 'group_replication_group_name' and value <> ''", ""); err != nil {
		return err
	}
	for _, f := range a.rows {
		return fmt.Errorf("%w: group_replication_group_name is %s: a lock by GET_LOCK is one server's, and the others of the group would give it once more: use technique rows", driver.ErrRefused, f[1])
	}
	return nil
}
