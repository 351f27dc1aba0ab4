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

// connDriver is a server as a store of locks that live with connections. It implements
// connlock.Store. It looks at the server as a Driver does, by the pool.
type connDriver struct {
	*connlock.Sessions
	base
	connector sqldriver.Connector
	place     place
	key       func(in place, name string) (string, error)
	technique connlock.Technique
	rows      bool // technique rowlock: a transaction each, that locks a row
}

// base is the Driver of rows. It is one level further down than the sessions, whose methods of the
// same name win.
type base struct{ *Driver }

const maxTTL = math.MaxInt32 * time.Second / 1000

// Traits implements driver.Driver.
func (d *connDriver) Traits() driver.Traits {
	return driver.Traits{
		Ordered: !d.rows, Events: driver.KindsOf(driver.Mutex), Expires: true, Fence: driver.Durable,
		MinTTL: minTTL, MaxTTL: maxTTL, Grain: 2 * time.Second, Notice: time.Second,
	}
}

// Key implements driver.Keyer.
func (d *connDriver) Key(name string) string {
	if k, err := d.key(d.place, name); err == nil && !d.rows {
		return k
	}
	return name
}

// KeyOf implements connlock.Store.
func (d *connDriver) KeyOf(c driver.Claim) (string, error) {
	switch {
	case c.Kind != driver.Mutex:
		return "", fmt.Errorf("%w: technique %s has mutexes only: use technique rows", driver.ErrRefused, d.options.Technique)
	case c.Name == "" || len(c.Name) > maxName:
		return "", fmt.Errorf("%w: want 1 to %d bytes", driver.ErrName, maxName)
	case d.rows:
		return c.Name, nil
	}
	return d.key(d.place, c.Name)
}

// settings are those of a session's own connections. Only the end of its time, in whole seconds,
// ends a connection.
const settings = "set session wait_timeout = %d, autocommit = 1 /*M!, max_statement_time = 0 */ /*!80000, max_execution_time = 0 */"

// patience is the least time for which both servers wait for a row. Only a statement that is told
// to waits longer.
const patience = "set session innodb_lock_wait_timeout = 1"

// Dial implements connlock.Store.
func (d *connDriver) Dial(ctx context.Context, spec driver.Spec, ended func()) (connlock.Conn, error) {
	w, err := mysqlwire.Connect(ctx, d.connector)
	if err != nil {
		return nil, classify(unconnected{err}, &d.options)
	}
	c := &conn{db: d.db, own: own + driver.NewID()}
	var id string
	statements := []string{
		fmt.Sprintf(settings, seconds(spec.TTL)),
		fmt.Sprintf("call %sadvance()", d.options.Prefix),
		fmt.Sprintf("select case when get_lock('%s', 0) + get_lock(concat('interlock@', connection_id()), 0) = 2 and is_used_lock('%[1]s') = connection_id() then connection_id() end", c.own),
	}
	if d.rows {
		statements = slices.Insert(statements, 2, patience)
	}
	for _, statement := range statements {
		if id, err = w.Ask(ctx, statement); err != nil {
			w.Close()
			return nil, classify(err, &d.options)
		}
	}
	if id == "" {
		w.Close()
		return nil, fmt.Errorf("%w: a connection has one named lock at most: want MySQL 5.7 or MariaDB 10, or use technique rows", driver.ErrRefused)
	}
	c.Locker = connlock.NewLocker(connlock.NewPipe(w, spec.TTL, ended), id, &d.technique)
	return c, nil
}

// Close implements driver.Driver.
func (d *connDriver) Close(ctx context.Context) error {
	_, err := d.Sessions.Close(ctx)
	_ = d.Driver.Close(ctx)
	return err
}
