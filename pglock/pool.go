package pglock

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// poolSource is a pgxpool.Pool.
type poolSource struct{ *pgxpool.Pool }

func (p poolSource) most() int { return int(p.Stat().MaxConns()) }
func (p poolSource) close()    { p.Close() }

// ask implements source, by one message: it is one round trip, and the server does nothing before
// it has all of it. But for what is prepared it is of the simple protocol, which prepares nothing
// that a pooler would lose. The level is that of the implicit transaction of the message alone.
func (p poolSource) ask(ctx context.Context, end time.Time, m message) (result, error) {
	if p.Stat().IdleConns() == 0 { // what is made of a context costs more than a look
		timed, cancel := context.WithDeadline(ctx, end)
		defer cancel()
		ctx = timed
	}
	conn, err := p.Acquire(ctx)
	if err != nil {
		return result{}, unconnected{err}
	}
	if m.careful {
		m.sql = "set transaction isolation level read committed; " + m.sql
	}
	x := exchange{conn: conn, pg: conn.Conn().PgConn()}
	greeted := int64(x.pg.PID())
	rows, err := x.do(ctx, end, m)
	if code(err) == readOnly && x.pg.ParameterStatus("default_transaction_read_only") == "on" && x.pg.ParameterStatus("in_hot_standby") != "on" {
		err = errReadOnly(err)
	}
	return result{rows, greeted}, err
}

// connect implements source.
func (p poolSource) connect(ctx context.Context, change func(*pgx.ConnConfig)) (*pgx.Conn, error) {
	of := p.Config()
	if of.BeforeConnect != nil { // as one that fetches a password of the hour
		if err := of.BeforeConnect(ctx, of.ConnConfig); err != nil {
			return nil, err
		}
	}
	change(of.ConnConfig)
	pc, err := pgx.ConnectConfig(ctx, of.ConnConfig)
	if err == nil && of.AfterConnect != nil { // as one that takes a role
		if err = of.AfterConnect(ctx, pc); err != nil {
			_ = pc.Close(ctx)
		}
	}
	return pc, err
}
