package pglock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/interlock-go/interlock/driver"
)

// dial makes a connection that is not of the pool, since it is kept, and is dialled as the pool dials.
func dial(ctx context.Context, pool *pgxpool.Pool, o *Options, change func(*pgx.ConnConfig)) (*pgx.Conn, error) {
	of := pool.Config()
	config := of.ConnConfig
	if o.Listen != nil {
		config = o.Listen.Copy()
	} else if of.BeforeConnect != nil { // as one that fetches a password of the hour
		if err := of.BeforeConnect(ctx, config); err != nil {
			return nil, err
		}
	}
	change(config)
	pc, err := pgx.ConnectConfig(ctx, config)
	if err == nil && of.AfterConnect != nil && o.Listen == nil { // as one that takes a role
		if err = of.AfterConnect(ctx, pc); err != nil {
			_ = pc.Close(ctx)
		}
	}
	return pc, err
}

// conn is a connection of a session's own, and the backend behind it, which has the locks. It always reads, so its end is noticed at
// once; and it keeps the order of what it is asked, so what nobody waits for any more is answered all the same.
type conn struct {
	pg    *pgconn.PgConn
	pid   string
	apart bool          // for one claim at a time, which waits or has waited
	done  chan struct{} // closed when the connection has ended and its session knows

	mu    sync.Mutex
	asked []chan<- reply // in order
	err   error          // why it has ended

	// Guarded by the session's mutex.
	claims  map[key]*link
	blocked bool // in a statement that waits for a lock
}

// reply is the answer to what a connection was asked.
type reply struct {
	rows [][][]byte // of the last statement that had any
	err  error
}

// field is the first one, or "".
func (r reply) field() string {
	if len(r.rows) == 0 || len(r.rows[0]) == 0 {
		return ""
	}
	return string(r.rows[0][0])
}

// errEnded is why a connection gives no answer.
var errEnded = errors.New("the connection has ended")

// newConn takes a connection over from its client, and calls lost when it has ended.
func newConn(pc *pgx.Conn, pid string, apart bool, lost func(*conn)) *conn {
	c := &conn{pg: pc.PgConn(), pid: pid, apart: apart, done: make(chan struct{}), claims: map[key]*link{}}
	go func() {
		err := c.read()
		_ = c.pg.Conn().Close()
		c.mu.Lock()
		c.err = fmt.Errorf("%w: %w", errEnded, err)
		c.mu.Unlock()
		lost(c)
		close(c.done)
		for _, answer := range c.asked {
			answer <- reply{err: c.err}
		}
	}()
	return c
}

func (c *conn) ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// read hands out answers until the connection ends.
func (c *conn) read() error {
	var r reply
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
			r.rows = nil
		case *pgproto3.DataRow:
			row := make([][]byte, len(m.Values))
			for i, v := range m.Values {
				row[i] = append([]byte(nil), v...)
			}
			r.rows = append(r.rows, row)
		case *pgproto3.ErrorResponse:
			r.err = pgconn.ErrorResponseToPgError(m)
		case *pgproto3.ReadyForQuery:
			c.mu.Lock()
			if len(c.asked) > 0 {
				c.asked[0] <- r
				c.asked = c.asked[1:]
			}
			c.mu.Unlock()
			r = reply{}
		}
	}
}

// ask sends statements behind all that were sent before, and returns where their answer will be.
func (c *conn) ask(sql string) <-chan reply {
	answer := make(chan reply, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		answer <- reply{err: c.err}
		return answer
	}
	c.asked = append(c.asked, answer)
	c.pg.Frontend().SendQuery(&pgproto3.Query{String: sql})
	if err := c.pg.Frontend().Flush(); err != nil {
		_ = c.pg.Conn().Close() // its reader tells everybody
	}
	return answer
}

// call asks and waits for the answer. Where none comes within the time after which the server has ended the backend, the connection has
// ended, too.
func (c *conn) call(sql string, within time.Duration) reply {
	answer := c.ask(sql)
	timer := time.AfterFunc(within, c.close)
	defer timer.Stop()
	return <-answer
}

// close ends the connection, and with it the backend and its locks.
func (c *conn) close() {
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
