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
	"github.com/interlock-go/interlock/internal/sessions"
)

// connDriver is a server as a store of locks that live with connections. What it is of a Driver is for looks, by the pool.
type connDriver struct {
	*Driver
	connector sqldriver.Connector
	database  string
	key       func(d *connDriver, name string) (string, error)
	rows      bool // technique rowlock: a transaction each, that locks a row
	sequence  bool // tokens are of a sequence, else of a table
	all       sessions.Set[*connlock.Session]
}

var (
	errClosed = fmt.Errorf("mysqllock: %w: the driver is closed", driver.ErrNotSent)
	errProxy  = fmt.Errorf("%w: a proxy shares connections, so that locks would be those of all its clients: name the server itself, or use technique rows", driver.ErrRefused)
)

func newConnDriver(ctx context.Context, base *Driver, c sqldriver.Connector) (driver.Driver, error) {
	d := &connDriver{Driver: base, connector: c, rows: base.options.Technique == "rowlock"}
	d.key, _ = convention(base.options.Keys) // looked at before
	if err := d.survey(ctx); err != nil {
		return nil, fmt.Errorf("mysqllock: %w", err)
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
		MinTTL: minTTL, MaxTTL: math.MaxInt32 * time.Second / 1000, Grain: 2 * time.Second, Notice: time.Second,
	}
}

// Key implements driver.Keyer.
func (d *connDriver) Key(name string) string {
	if k, err := d.key(d, name); err == nil && !d.rows {
		return k
	}
	return name
}

// Open implements driver.Driver.
func (d *connDriver) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	if t := d.Traits(); spec.TTL < t.MinTTL || spec.TTL > t.MaxTTL {
		return nil, fmt.Errorf("mysqllock: TTL %v: want %v to %v: %w", spec.TTL, t.MinTTL, t.MaxTTL, driver.ErrRefused)
	}
	var store connlock.Store = d
	if d.rows {
		store = rowStore{d}
	}
	s := connlock.New(connlock.Config{
		Store: store, Spec: spec, Package: "mysqllock", Timeout: min(d.options.Timeout, spec.TTL), MaxWaiting: d.options.MaxWaiting, Instead: ", or use technique rows", Closed: d.all.Remove,
	})
	if !d.all.Add(s) {
		return nil, errClosed
	}
	if err := s.Open(ctx); err != nil {
		d.all.Remove(s)
		return nil, err
	}
	if d.rows { // no transaction ends on a condition
		return s, nil
	}
	return connlock.Requeuer{Session: s}, nil
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
	_, err := d.all.Close(ctx)
	_ = d.Driver.Close(ctx)
	return err
}
