package pglock

import (
	"net"
	"slices"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/connlock"
)

// wire implements connlock.Wire. A query with arguments is prepared when it is first sent. One
// without may be several statements, which are not prepared.
type wire struct {
	pg     *pgconn.PgConn
	names  string         // begins names of statements: a pooler may have left those of another client
	answer connlock.Reply // as far as it has come; only the reader uses it

	mu        sync.Mutex
	prepared  map[string]string // names of statements
	named     int
	preparing []string // of what was sent, the statement that is prepared with it, or none
}

func newWire(pg *pgconn.PgConn) *wire {
	return &wire{pg: pg, prepared: map[string]string{}, names: driver.NewID()[:8]}
}

// Conn implements connlock.Wire.
func (w *wire) Conn() net.Conn { return w.pg.Conn() }

// Send implements connlock.Wire. The server tells that a query begins only if it is prepared.
func (w *wire) Send(q connlock.Query) (tells bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	front := w.pg.Frontend()
	if len(q.Args) == 0 {
		w.preparing = append(w.preparing, "")
		front.SendQuery(&pgproto3.Query{String: q.SQL})
		return false, front.Flush()
	}
	name, known := w.prepared[q.SQL]
	if known {
		w.preparing = append(w.preparing, "")
	} else {
		w.named++
		name = w.names + strconv.Itoa(w.named)
		w.prepared[q.SQL], w.preparing = name, append(w.preparing, q.SQL)
		front.SendParse(&pgproto3.Parse{Name: name, Query: q.SQL})
	}
	front.SendBind(&pgproto3.Bind{PreparedStatement: name, Parameters: q.Args})
	if q.Tells {
		front.Send(&pgproto3.Flush{})
	}
	front.SendExecute(&pgproto3.Execute{})
	front.SendSync(&pgproto3.Sync{})
	return true, front.Flush()
}

// Receive implements connlock.Wire.
func (w *wire) Receive() (connlock.Event, connlock.Reply, error) {
	m, err := w.pg.Frontend().Receive()
	if err != nil {
		if w.answer.Err != nil {
			err = w.answer.Err // what the server said before it closed
		}
		return connlock.Nothing, connlock.Reply{}, err
	}
	switch m := m.(type) {
	case *pgproto3.BindComplete:
		return connlock.Begins, connlock.Reply{}, nil
	case *pgproto3.RowDescription:
		w.answer.Field = ""
	case *pgproto3.DataRow:
		w.answer.Field = string(m.Values[0])
	case *pgproto3.ErrorResponse:
		w.answer.Err = pgconn.ErrorResponseToPgError(m)
	case *pgproto3.ReadyForQuery:
		answer := w.answer
		w.answer = connlock.Reply{}
		w.answered(answer.Err != nil)
		return connlock.Answered, answer, nil
	}
	return connlock.Nothing, connlock.Reply{}, nil
}

// answered handles the answer to the first query. If that failed, its statement was not prepared.
func (w *wire) answered(failed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.preparing) == 0 {
		return
	}
	if first := w.preparing[0]; failed && first != "" {
		delete(w.prepared, first)
	}
	w.preparing = slices.Delete(w.preparing, 0, 1)
}

// Bye implements connlock.Wire.
func (w *wire) Bye() {
	w.pg.Frontend().Send(&pgproto3.Terminate{})
	_ = w.pg.Frontend().Flush()
}
