package pglock

import (
	"bytes"
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/interlock-go/interlock/internal/sessions"
)

// exchange is one message to the server and its answer, over a connection of the pool. The caller
// reads the answer itself: on a free lock, to wake another goroutine costs most beside the disk.
type exchange struct {
	conn    *pgxpool.Conn
	pg      *pgconn.PgConn
	parsing string     // the name of the statement that it prepares
	rows    [][][]byte // of the last statement
	failed  *pgconn.PgError
}

// write writes a message: a query of the simple protocol, which prepares nothing, or a call of a
// prepared statement, which it prepares if the connection has not yet.
func (x *exchange) write(m message) {
	f := x.pg.Frontend()
	if m.args == nil {
		f.SendQuery(&pgproto3.Query{String: m.sql})
		return
	}
	if x.pg.CustomData()[m.turn.name] == nil {
		x.parsing = m.turn.name
		f.SendParse(&pgproto3.Parse{Name: m.turn.name, Query: m.turn.sql})
	}
	f.SendBind(&pgproto3.Bind{PreparedStatement: m.turn.name, Parameters: m.args})
	f.SendExecute(&pgproto3.Execute{})
	f.SendSync(&pgproto3.Sync{})
}

// do sends a message and returns the rows of its last statement. When ctx ends it returns; the
// answer is read until end by another goroutine, and dropped. To cancel the statement would leave
// its outcome open and cost the connection.
func (x *exchange) do(ctx context.Context, end time.Time, m message) ([][][]byte, error) {
	wire, woken := x.pg.Conn(), make(chan struct{})
	_ = wire.SetDeadline(end)
	stop := context.AfterFunc(ctx, func() {
		_ = wire.SetDeadline(time.Unix(1, 0))
		close(woken)
	})
	x.write(m)
	err := x.pg.Frontend().Flush()
	sent := err == nil
	if sent {
		err = x.read()
	}
	if !stop() {
		<-woken // it sets a deadline, which is not for the next user
	}
	_ = wire.SetDeadline(time.Time{})
	if sent && pgconn.Timeout(err) && ctx.Err() != nil && time.Now().Before(end) {
		over := make(chan struct{})
		go func() {
			defer close(over)
			_ = wire.SetDeadline(end)
			err := x.read()
			_ = wire.SetDeadline(time.Time{})
			x.release(err)
		}()
		return nil, &sessions.Underway{Cause: ctx.Err(), Over: over}
	}
	x.release(err)
	switch {
	case x.failed != nil:
		return nil, x.failed
	case err != nil && sent:
		return nil, unread{err}
	}
	return x.rows, err
}

// read reads the answer.
func (x *exchange) read() error {
	for {
		message, err := x.pg.ReceiveMessage(context.Background())
		if err != nil {
			return err
		}
		switch m := message.(type) {
		case *pgproto3.ParseComplete:
			x.pg.CustomData()[x.parsing] = true
		case *pgproto3.RowDescription:
			x.rows = nil
		case *pgproto3.DataRow:
			row := make([][]byte, len(m.Values))
			for i, v := range m.Values {
				row[i] = bytes.Clone(v)
			}
			x.rows = append(x.rows, row)
		case *pgproto3.ErrorResponse:
			x.failed = pgconn.ErrorResponseToPgError(m)
		case *pgproto3.ReadyForQuery:
			return nil
		}
	}
}

// release returns the connection to the pool. One that is of no more use is closed: something has
// failed on the way, or the server has stopped being a primary.
func (x *exchange) release(err error) {
	if err != nil || x.failed != nil && x.failed.Code == readOnly && x.pg.ParameterStatus("default_transaction_read_only") != "on" {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = x.pg.Close(ctx)
	}
	x.conn.Release()
}
