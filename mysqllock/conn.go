package mysqllock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/connlock"
)

// conn implements connlock.Conn.
type conn struct {
	*connlock.Pipe
	d   *connDriver
	id  string // its number in the server
	own string // see there
}

var errEndedOutside = errors.New("a wait was ended from outside")

// granted reads the answer to try and get.
func granted(r connlock.Reply) (driver.Grant, error) {
	if r.Err != nil || r.Field == "" || r.Field == "-1" {
		return driver.Grant{}, r.Err
	}
	return driver.Grant{Held: true, Fence: uint64(integer(r.Field))}, nil //nolint:gosec // drawn by us
}

// Try implements connlock.Conn.
func (c *conn) Try(ctx context.Context, l connlock.Lock, then func(driver.Grant, error)) error {
	return c.Call(ctx, c.d.try(l), func(r connlock.Reply) {
		if r.Err != nil && !errors.Is(r.Err, connlock.ErrEnded) {
			c.Ask(c.d.leave(l), func(connlock.Reply) {}) // the lock was taken, perhaps, and then there was no token
			r.Err = classify(r.Err, &c.d.options)
		}
		then(granted(r))
	})
}

// Wait implements connlock.Conn.
func (c *conn) Wait(l connlock.Lock, then func(driver.Grant, error)) {
	c.Pipe.Wait(c.d.get(l, forever), func(r connlock.Reply) {
		g, err := granted(r)
		if err == nil && !g.Held {
			err = errEndedOutside
		}
		then(g, err)
	})
}

// Cancel implements connlock.Conn. A query that is killed too late would be the next one, so the connection is ended. Its number is asked for
// and killed over one connection, so that no restart comes between.
func (c *conn) Cancel(ctx context.Context) error {
	by, err := c.d.db.Conn(ctx)
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

// Waits implements connlock.Conn.
func (c *conn) Waits(ctx context.Context, other connlock.Conn) (bool, error) {
	q := waits(other.(*conn).id)
	if c.d.rows {
		q = busy(other.(*conn).id)
	}
	n, err := c.Fetch(ctx, q)
	return n == "1", err
}

// Leave implements connlock.Conn.
func (c *conn) Leave(ctx context.Context, l connlock.Lock, then func(bool, error)) error {
	return c.Call(ctx, c.d.leave(l), func(r connlock.Reply) { then(r.Field == "1" || c.d.rows && r.Err == nil, r.Err) })
}

// Hand implements connlock.Hander.
func (c *conn) Hand(ctx context.Context, l connlock.Lock, other connlock.Conn, then func(connlock.Handed, error)) error {
	return c.Call(ctx, hand(l, other.(*conn).id), func(r connlock.Reply) {
		had, has, _ := strings.Cut(r.Field, " ")
		then(connlock.Handed{Stands: had != "-1", Had: had == "1", Has: has == "1"}, r.Err)
	})
}

// Ping implements connlock.Conn. Another connection may answer where a proxy has come between.
func (c *conn) Ping() error {
	id, err := c.Fetch(context.Background(), connlock.Query{SQL: "select connection_id()"})
	if err == nil && id != c.id {
		err = errProxy
	}
	return err
}

// Free implements connlock.Conn.
func (c *conn) Free(ctx context.Context) error {
	free := "select release_all_locks()"
	if c.d.rows {
		free = "rollback"
	}
	_, err := c.Fetch(ctx, connlock.Query{SQL: free})
	return err
}
