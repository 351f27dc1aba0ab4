package pglock

import (
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// query is one statement, which is prepared when it is asked for the first time; without arguments it is any number of them, which are not.
type query struct {
	sql   string
	args  [][]byte
	tells bool // that it begins, since it may last
}

// reply is the answer to a query.
type reply struct {
	field string // the first one of the last statement that had rows
	err   error
}

// request is a query that was sent.
type request struct {
	then     func(reply) // called once, by whoever reads
	prepares string      // the statement, if it is prepared with it
	begins   event
	over     event       // then is back
	lasts    bool        // it is awaited by whoever wants its answer
	limit    *time.Timer // until the connection is closed
}

// event is something that happens once.
type event struct {
	been bool
	told chan struct{} // closed then, where somebody waits for that
}

// happen says that it has happened. The mutex of the pipe is held, here and below.
func (e *event) happen() {
	if !e.been && e.told != nil {
		close(e.told)
	}
	e.been = true
}

// tell returns what is closed when it has happened.
func (e *event) tell() <-chan struct{} {
	if e.told == nil {
		e.told = make(chan struct{})
		if e.been {
			close(e.told)
		}
	}
	return e.told
}

// write writes the messages of a query. p.mu is held.
func (p *pipe) write(q query, r *request) {
	front := p.pg.Frontend()
	if len(q.args) == 0 {
		front.SendQuery(&pgproto3.Query{String: q.sql})
		r.begins.happen() // which nobody is told
		return
	}
	name, known := p.prepared[q.sql]
	if !known {
		p.named++
		name, r.prepares = p.names+strconv.Itoa(p.named), q.sql
		p.prepared[q.sql] = name
		front.SendParse(&pgproto3.Parse{Name: name, Query: q.sql})
	}
	front.SendBind(&pgproto3.Bind{PreparedStatement: name, Parameters: q.args})
	if q.tells {
		front.Send(&pgproto3.Flush{})
	}
	front.SendExecute(&pgproto3.Execute{})
	front.SendSync(&pgproto3.Sync{})
}
