package pglock

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

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
	*connlock.Pipe
	pg  *pgconn.PgConn
	d   *connDriver
	pid string // of the backend, which has the locks
}

// Try implements connlock.Conn.
func (c *conn) Try(ctx context.Context, l connlock.Lock, then func(driver.Grant, error)) error {
	w := c.d.words(l)
	return c.Call(ctx, w.try, func(r connlock.Reply) {
		var g driver.Grant
		switch {
		case errors.Is(r.Err, connlock.ErrEnded):
		case r.Err != nil:
			c.Ask(w.leave, func(connlock.Reply) {}) // the lock was taken, perhaps, and then there was no token
			r.Err = classify(r.Err, &c.d.options)
		case r.Field != "" && r.Field != "-1":
			g = granted(r.Field)
		case c.d.rows:
			c.Ask(w.leave, func(connlock.Reply) {}) // a transaction was begun
		}
		then(g, r.Err)
	})
}

// Wait implements connlock.Conn.
func (c *conn) Wait(l connlock.Lock, then func(driver.Grant, error)) {
	c.Pipe.Wait(c.d.words(l).wait, func(r connlock.Reply) {
		if r.Err == nil && r.Field == "" {
			r.Err = errors.New("the server answered nothing")
		}
		then(granted(r.Field), r.Err)
	})
}

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
	field, err := c.Fetch(ctx, connlock.Query{SQL: "select " + waits, Args: [][]byte{[]byte(other.(*conn).pid)}})
	return field == "t", err
}

// Leave implements connlock.Conn.
func (c *conn) Leave(ctx context.Context, l connlock.Lock, then func(bool, error)) error {
	return c.Call(ctx, c.d.words(l).leave, func(r connlock.Reply) { then(r.Field == "t", r.Err) })
}

// Hand implements connlock.Hander. A case evaluates in order, and what it answers left to right; the server lets the next one in before it
// answers an unlock.
func (c *conn) Hand(ctx context.Context, l connlock.Lock, other connlock.Conn, then func(connlock.Handed, error)) error {
	args := append([][]byte{[]byte(other.(*conn).pid)}, c.d.args(l)...)
	return c.Call(ctx, connlock.Query{SQL: c.d.text(l).hand, Args: args}, func(r connlock.Reply) {
		had, still, stands := strings.Cut(r.Field, " ")
		then(connlock.Handed{Stands: stands, Had: had == "true", Has: still == "false"}, r.Err)
	})
}

// Ping implements connlock.Conn. Another backend may answer where a pooler has come between.
func (c *conn) Ping() error {
	pid, err := c.Fetch(context.Background(), connlock.Query{SQL: ping})
	if err == nil && pid != c.pid {
		go c.d.options.Logger.Error("pglock: " + errPooler.Error()) // a log that blocks holds up no renewal
		err = errPooler
	}
	return err
}

// Free implements connlock.Conn.
func (c *conn) Free(ctx context.Context) error {
	_, err := c.Fetch(ctx, connlock.Query{SQL: c.d.free})
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
