package pglock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

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

// conn implements connlock.Conn. It always reads, so its end is noticed at once; and it keeps the order of what it is asked, so what nobody
// waits for any more is answered all the same.
type conn struct {
	d      *connDriver
	pg     *pgconn.PgConn
	pid    string        // of the backend, which has the locks
	within time.Duration // what is not answered by then never is: the server has ended the backend

	mu    sync.Mutex
	asked []chan<- said // in order
	err   error         // why it has ended
}

// said is the answer to what a connection was asked.
type said struct {
	field string // the first one of the last statement that had rows
	err   error
}

// serve reads until the connection ends, and calls ended then.
func (c *conn) serve(ended func()) {
	err := c.read()
	_ = c.pg.Conn().Close()
	c.mu.Lock()
	c.err = fmt.Errorf("%w: %w", connlock.ErrEnded, err)
	c.mu.Unlock()
	ended()
	for _, answer := range c.asked {
		answer <- said{err: c.err}
	}
}

// read hands out answers until the connection ends.
func (c *conn) read() error {
	var r said
	for {
		m, err := c.pg.Frontend().Receive()
		if err != nil && r.err != nil {
			err = r.err // what the server said before it closed
		}
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *pgproto3.RowDescription:
			r.field = ""
		case *pgproto3.DataRow:
			r.field = string(m.Values[0])
		case *pgproto3.ErrorResponse:
			r.err = pgconn.ErrorResponseToPgError(m)
		case *pgproto3.ReadyForQuery:
			c.mu.Lock()
			if len(c.asked) > 0 {
				c.asked[0] <- r
				c.asked = c.asked[1:]
			}
			c.mu.Unlock()
			r = said{}
		}
	}
}

// ask sends statements behind all that were sent before, and returns where their answer will be.
func (c *conn) ask(sql string) <-chan said {
	answer := make(chan said, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		answer <- said{err: c.err}
		return answer
	}
	c.asked = append(c.asked, answer)
	c.pg.Frontend().SendQuery(&pgproto3.Query{String: sql})
	if err := c.pg.Frontend().Flush(); err != nil {
		_ = c.pg.Conn().Close() // its reader tells everybody
	}
	return answer
}

// call asks and waits for the answer.
func (c *conn) call(sql string) (string, error) {
	answer := c.ask(sql)
	timer := time.AfterFunc(c.within, c.Close)
	defer timer.Stop()
	r := <-answer
	return r.field, r.err
}

// Try implements connlock.Conn.
func (c *conn) Try(l connlock.Lock) (driver.Grant, error) {
	w := c.d.words(l)
	field, err := c.call(w.try)
	switch {
	case errors.Is(err, connlock.ErrEnded):
		return driver.Grant{}, err
	case err != nil:
		c.ask(w.leave) // the lock was taken, perhaps, and then there was no token
		return driver.Grant{}, classify(err, &c.d.options)
	case field != "" && field != "-1":
		return granted(field), nil
	case c.d.rows:
		c.ask(w.leave) // a transaction was begun
	}
	return driver.Grant{}, nil
}

// Wait implements connlock.Conn.
func (c *conn) Wait(l connlock.Lock) (driver.Grant, error) {
	r := <-c.ask(c.d.words(l).wait)
	if r.err == nil && r.field == "" {
		r.err = errors.New("the server answered nothing")
	}
	return granted(r.field), r.err
}

func granted(field string) driver.Grant {
	return driver.Grant{Held: true, Fence: uint64(number(field))} //nolint:gosec // drawn by us
}

// Cancel implements connlock.Conn: the server drops a cancel that comes when nothing is carried out, and has taken it in when it closes the
// connection that brought it.
func (c *conn) Cancel(ctx context.Context) error { return c.pg.CancelRequest(ctx) }

// Shows implements connlock.Conn.
func (c *conn) Shows(l connlock.Lock, other connlock.Conn) (bool, error) {
	n, err := c.call("select count(*) from pg_locks l where l.pid = " + other.(*conn).pid + " and " + c.d.words(l).shows)
	return n != "0", err
}

// Leave implements connlock.Conn.
func (c *conn) Leave(l connlock.Lock) (bool, error) {
	had, err := c.call(c.d.words(l).leave)
	return had == "t", err
}

// Hand implements connlock.Hander. A case evaluates in order, and what it answers left to right; the server lets the next one in before it
// answers an unlock.
func (c *conn) Hand(l connlock.Lock, other connlock.Conn) (connlock.Handed, error) {
	w := c.d.words(l)
	there := " from pg_locks l where l.pid = " + other.(*conn).pid + " and " + w.shows
	field, err := c.call("select case when exists (select" + there + ") then (" + w.leave + ") || ' ' || (select l.granted" + there + ") end")
	had, has, stands := strings.Cut(field, " ")
	return connlock.Handed{Stands: stands, Had: had == "true", Has: has == "true"}, err
}

// Ping implements connlock.Conn. Another backend may answer where a pooler has come between.
func (c *conn) Ping() error {
	pid, err := c.call(ping)
	if err == nil && pid != c.pid {
		c.d.options.Logger.Error("pglock: " + errPooler.Error())
		err = errPooler
	}
	return err
}

// Free implements connlock.Conn.
func (c *conn) Free(ctx context.Context) error {
	select {
	case r := <-c.ask(c.d.free):
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close implements connlock.Conn: it ends the backend, too.
func (c *conn) Close() {
	_ = c.pg.Conn().SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	c.mu.Lock()
	c.pg.Frontend().Send(&pgproto3.Terminate{})
	_ = c.pg.Frontend().Flush()
	c.mu.Unlock()
	_ = c.pg.Conn().Close()
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

var errPooler = fmt.Errorf("%w: the server is behind a pooler that shares connections, where a lock belongs to nobody: use technique rows, or name the server itself by listen",
	driver.ErrRefused)
