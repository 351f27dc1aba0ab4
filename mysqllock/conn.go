package mysqllock

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/connlock"
)

// conn implements connlock.Hander.
type conn struct {
	*connlock.Locker
	db  *sql.DB // by which a wait is cancelled
	own string  // the name of a lock that it has: see there
}

// own begins the name of a lock that a connection has as long as it lives. The rest nobody else
// knows: the number of a connection comes again after a restart, and then is a stranger's. Besides,
// it has the lock interlock@ and its number, by which others see that it is of this package.
const own = "interlock-"

var errProxy = fmt.Errorf("%w: a proxy shares connections, so that locks would be those of all its clients: name the server itself, or use technique rows", driver.ErrRefused)

// Cancel implements connlock.Conn. A query that is killed too late would be the next one, so the
// connection is ended. Its number is asked for and killed over one connection, so that no restart
// comes between.
func (c *conn) Cancel(ctx context.Context) error {
	by, err := c.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = by.Close() }()
	f, err := results(ctx, by, fmt.Sprintf("select is_used_lock('%s')", c.own))
	if err != nil || len(f[0][0]) == 0 { // it has ended
		return err
	}
	if _, err = results(ctx, by, fmt.Sprintf("kill %s", f[0][0])); code(err) == noThread {
		return nil
	}
	return err
}

// Hand implements connlock.Hander.
func (c *conn) Hand(ctx context.Context, l connlock.Lock, other connlock.Conn, then func(connlock.Handed, error)) error {
	return c.Call(ctx, hand(l, other.(*conn).ID), func(r connlock.Reply) {
		had, has, _ := strings.Cut(r.Field, " ")
		then(connlock.Handed{Stands: had != "-1", Had: had == "1", Has: has == "1"}, r.Err)
	})
}

// Ping implements connlock.Conn. Another connection may answer where a proxy has come between.
func (c *conn) Ping() error {
	id, err := c.Fetch(context.Background(), connlock.Query{SQL: "select connection_id()"})
	if err == nil && id != c.ID {
		err = errProxy
	}
	return err
}
