package pglock

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/connlock"
)

// connect makes a connection that is not of the source, since it is kept: to the server that Listen names, or as the source makes its own.
func (d *Driver) connect(ctx context.Context, change func(*pgx.ConnConfig)) (*pgx.Conn, error) {
	if d.options.Listen == nil {
		return d.source.connect(ctx, change)
	}
	config := d.options.Listen.Copy()
	change(config)
	return pgx.ConnectConfig(ctx, config)
}

// conn implements connlock.Conn.
type conn struct {
	*pipe
	d    *connDriver
	pid  string   // of the backend, which has the locks
	wait *request // the last Wait
}

// Try implements connlock.Conn.
func (c *conn) Try(ctx context.Context, l connlock.Lock, then func(driver.Grant, error)) error {
	w := c.d.words(l)
	return c.call(ctx, w.try, func(r reply) {
		var g driver.Grant
		switch {
		case errors.Is(r.err, connlock.ErrEnded):
		case r.err != nil:
			c.ask(w.leave, func(reply) {}) // the lock was taken, perhaps, and then there was no token
			r.err = classify(r.err, &c.d.options)
		case r.field != "" && r.field != "-1":
			g = granted(r.field)
		case c.d.rows:
			c.ask(w.leave, func(reply) {}) // a transaction was begun
		}
		then(g, r.err)
	})
}

// Wait implements connlock.Conn.
func (c *conn) Wait(l connlock.Lock, then func(driver.Grant, error)) {
	c.wait = &request{lasts: true, then: func(r reply) {
		if r.err == nil && r.field == "" {
			r.err = errors.New("the server answered nothing")
		}
		then(granted(r.field), r.err)
	}}
	if c.send(c.d.words(l).wait, c.wait) {
		c.pass(nil)
	}
}

// Begins implements connlock.Conn.
func (c *conn) Begins(ctx context.Context) error { return c.await(ctx, &c.wait.begins) }

// Await implements connlock.Conn.
func (c *conn) Await(ctx context.Context) error { return c.await(ctx, &c.wait.over) }

func granted(field string) driver.Grant {
	return driver.Grant{Held: true, Fence: uint64(number(field))} //nolint:gosec // drawn by us
}

// Cancel implements connlock.Conn: the server drops a cancel that comes when nothing is carried out, and has taken it in when it closes the
// connection that brought it.
func (c *conn) Cancel(ctx context.Context) error { return c.pg.CancelRequest(ctx) }

// waits tells by a pid whether the backend stands in line for the lock that it is to wait for. To look into pg_locks would list all locks
// of all backends.
const waits = "pg_blocking_pids($1) <> '{}'"

// Waits implements connlock.Conn.
func (c *conn) Waits(ctx context.Context, other connlock.Conn) (bool, error) {
	field, err := c.fetch(ctx, query{sql: "select " + waits, args: [][]byte{[]byte(other.(*conn).pid)}})
	return field == "t", err
}

// Leave implements connlock.Conn.
func (c *conn) Leave(ctx context.Context, l connlock.Lock, then func(bool, error)) error {
	return c.call(ctx, c.d.words(l).leave, func(r reply) { then(r.field == "t", r.err) })
}

// Hand implements connlock.Hander. A case evaluates in order, and what it answers left to right; the server lets the next one in before it
// answers an unlock.
func (c *conn) Hand(ctx context.Context, l connlock.Lock, other connlock.Conn, then func(connlock.Handed, error)) error {
	args := append([][]byte{[]byte(other.(*conn).pid)}, c.d.args(l)...)
	return c.call(ctx, query{sql: c.d.text(l).hand, args: args}, func(r reply) {
		had, still, stands := strings.Cut(r.field, " ")
		then(connlock.Handed{Stands: stands, Had: had == "true", Has: still == "false"}, r.err)
	})
}

// Ping implements connlock.Conn. Another backend may answer where a pooler has come between.
func (c *conn) Ping() error {
	pid, err := c.fetch(context.Background(), query{sql: ping})
	if err == nil && pid != c.pid {
		c.d.options.Logger.Error("pglock: " + errPooler.Error())
		err = errPooler
	}
	return err
}

// Free implements connlock.Conn.
func (c *conn) Free(ctx context.Context) error {
	_, err := c.fetch(ctx, query{sql: c.d.free})
	return err
}

// keepAlive has the system notice within half a minute that the server's machine is gone.
func keepAlive(nc net.Conn) {
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok { // by TLS
		nc = t.NetConn()
	}
	if t, ok := nc.(*net.TCPConn); ok {
		_ = t.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3})
	}
}

// settings are those of a session's own connections: nothing but the end of its time ends a backend, and that does, also where nobody
// could tell it that its client is gone. What is not there in the server's version is left out.
const settings = "set transaction read write; select set_config(s.name, v.setting, false) from pg_settings s join (values " +
	"('idle_session_timeout', '%d'), ('idle_in_transaction_session_timeout', '%[1]d'), ('statement_timeout', '0'), ('lock_timeout', '0'), ('transaction_timeout', '0'), " +
	"('client_connection_check_interval', '500'), ('tcp_keepalives_idle', '10'), ('tcp_keepalives_interval', '5'), ('tcp_keepalives_count', '3'), ('tcp_user_timeout', '25000'), " +
	"('default_transaction_read_only', 'off'), ('application_name', encode(decode('%x', 'hex'), 'escape')), " +
	"('synchronous_commit', case when current_setting('synchronous_commit') in ('off', 'local') then 'on' else current_setting('synchronous_commit') end)" +
	") v (name, setting) using (name); "
