package mysqllock

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/connlock"
	"github.com/interlock-go/interlock/internal/mysqlwire"
)

// connDriver is a server as a store of locks that live with connections. What it is of a Driver is for looks, by the pool.
type connDriver struct {
	*connlock.Sessions
	base
	connector sqldriver.Connector
	database  string
	key       func(d *connDriver, name string) (string, error)
	rows      bool // technique rowlock: a transaction each, that locks a row
	sequence  bool // tokens are of a sequence, else of a table
}

// base is the Driver of rows, one step further down than the sessions, whose methods of the same name come first.
type base struct{ *Driver }

var errProxy = fmt.Errorf("%w: a proxy shares connections, so that locks would be those of all its clients: name the server itself, or use technique rows", driver.ErrRefused)

const maxTTL = math.MaxInt32 * time.Second / 1000

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

// survey looks at the server.
func (d *connDriver) survey(ctx context.Context) error {
	if d.connector == nil {
		return fmt.Errorf("%w: technique %s keeps connections, and those of a pool are the program's: open the store by its URL, or by NewConnector", driver.ErrRefused, d.options.Technique)
	}
	a, err := d.send(ctx, fmt.Sprintf("select database(), (select count(*) from information_schema.tables where table_schema = database() and table_name = '%stoken' and table_type = 'SEQUENCE')", d.options.Prefix), "")
	if err != nil {
		return err
	}
	d.database, d.sequence = string(a.rows[0][0]), string(a.rows[0][1]) == "1"
	if a, err = d.send(ctx, "show global variables where variable_name = 'group_replication_group_name' and value <> ''", ""); err != nil {
		return err
	}
	for _, f := range a.rows {
		return fmt.Errorf("%w: group_replication_group_name is %s: a lock by GET_LOCK is one server's, and the others of the group would give it once more: use technique rows", driver.ErrRefused, f[1])
	}
	return nil
}

// Traits implements driver.Driver.
func (d *connDriver) Traits() driver.Traits {
	return driver.Traits{
		Ordered: !d.rows, Events: driver.KindsOf(driver.Mutex), Expires: true, Fence: driver.Durable,
		MinTTL: minTTL, MaxTTL: maxTTL, Grain: 2 * time.Second, Notice: time.Second,
	}
}

// Key implements driver.Keyer.
func (d *connDriver) Key(name string) string {
	if k, err := d.key(d, name); err == nil && !d.rows {
		return k
	}
	return name
}

// settings are those of a session's own connections: nothing but the end of its time ends one, which is in whole seconds.
const settings = "set session wait_timeout = %d, autocommit = 1 /*M!, max_statement_time = 0 */ /*!80000, max_execution_time = 0 */"

// Dial implements connlock.Store.
func (d *connDriver) Dial(ctx context.Context, spec driver.Spec, ended func()) (connlock.Conn, error) {
	w, err := mysqlwire.Connect(ctx, d.connector)
	if err != nil {
		return nil, classify(unconnected{err}, &d.options)
	}
	c := &conn{d: d, own: own + driver.NewID()}
	statements := []string{
		fmt.Sprintf(settings, seconds(spec.TTL)),
		fmt.Sprintf("call %sadvance()", d.options.Prefix),
		fmt.Sprintf("select case when get_lock('%s', 0) + get_lock(concat('interlock@', connection_id()), 0) = 2 and is_used_lock('%[1]s') = connection_id() then connection_id() end", c.own),
	}
	if d.rows {
		statements = slices.Insert(statements, 2, patience)
	}
	for _, statement := range statements {
		if c.id, err = w.Ask(ctx, statement); err != nil {
			w.Close()
			return nil, classify(err, &d.options)
		}
	}
	if c.id == "" {
		w.Close()
		return nil, fmt.Errorf("%w: a connection has one named lock at most: want MySQL 5.7 or MariaDB 10, or use technique rows", driver.ErrRefused)
	}
	c.Pipe = connlock.NewPipe(w, spec.TTL, ended)
	return c, nil
}

// Close implements driver.Driver.
func (d *connDriver) Close(ctx context.Context) error {
	_, err := d.Sessions.Close(ctx)
	_ = d.Driver.Close(ctx)
	return err
}
