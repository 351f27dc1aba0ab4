package pglock

import (
	"context"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/interlock-go/interlock/internal/connlock"
)

// conn implements connlock.Hander. What it has belongs to the backend whose pid is its ID.
type conn struct {
	*connlock.Locker
	pg   *pgconn.PgConn
	log  *slog.Logger
	hand func(l connlock.Lock, pid string) connlock.Query
}

// Cancel implements connlock.Conn. The server ignores a cancel that comes when it carries nothing
// out. It has handled the cancel when it closes the connection that brought it.
func (c *conn) Cancel(ctx context.Context) error { return c.pg.CancelRequest(ctx) }

// Hand implements connlock.Hander.
func (c *conn) Hand(ctx context.Context, l connlock.Lock, other connlock.Conn, then func(connlock.Handed, error)) error {
	return c.Call(ctx, c.hand(l, other.(*conn).ID), func(r connlock.Reply) {
		had, still, stands := strings.Cut(r.Field, " ")
		then(connlock.Handed{Stands: stands, Had: had == "true", Has: still == "false"}, r.Err)
	})
}

// Ping implements connlock.Conn. Another backend may answer where a pooler has come between.
func (c *conn) Ping() error {
	pid, err := c.Fetch(context.Background(), connlock.Query{SQL: ping})
	if err == nil && pid != c.ID {
		go c.log.Error("pglock: " + errPooler.Error()) // a log that blocks holds up no renewal
		err = errPooler
	}
	return err
}
