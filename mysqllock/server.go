package mysqllock

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/internal/rowline"
	"github.com/interlock-go/interlock/internal/sessions"
)

// server is a database and how it is asked. All techniques share it.
type server struct {
	db      *sql.DB
	options Options
	gates   *gates // nil over a program's pool: claims that wait poll
}

// reply is what came of a request: the rows of all results of its statement.
type reply struct {
	rows  [][][]byte
	twice bool // it was sent once more after an attempt of unknown outcome
	kept  bool // the keeper of the gates carried it out
}

// send sends a statement as often as a request may be sent: see [rowline.Request]. A step in which
// a claim leaves that may have a gate is sent by the gates' keeper, at the first attempt.
func (s *server) send(ctx context.Context, statement, leaves string) (a reply, err error) {
	end, ok := ctx.Deadline()
	if !ok {
		end = time.Now().Add(s.options.Timeout)
	}
	request := rowline.Request{
		Send: func() (err error) {
			a.rows, a.kept, err = s.ask(ctx, end, statement, leaves)
			leaves = ""
			return err
		},
		Fate: func(err error) rowline.Fate {
			switch {
			case undone(err):
				return rowline.Undone
			case unknown(err):
				return rowline.Unknown
			}
			return rowline.Certain
		},
		Classify: func(err error) error { return classify(err, &s.options) },
	}
	a.twice, err = request.Do(ctx, end)
	return a, err
}

// ask sends a statement over a connection of the pool, once. The client closes a connection whose
// context ends, and what came of the statement would be lost with it. So the statement is made
// apart from the caller, and awaited until end without it.
func (s *server) ask(ctx context.Context, end time.Time, statement, leaves string) ([][][]byte, bool, error) {
	var all [][][]byte
	var kept bool
	err := sessions.Aside(ctx, 0, func(context.Context) error {
		timed, cancel := context.WithDeadline(context.Background(), end)
		defer cancel()
		keeper, over := s.gates.turn(leaves)
		defer over()
		var err error
		all, err = once(timed, s.db, keeper, statement) //nolint:contextcheck // it outlives the caller
		if s.gates != nil && slices.Contains(full, code(err)) {
			all, err = s.gates.spare(timed, statement, err) //nolint:contextcheck // as above
		}
		kept = keeper != nil
		return err
	})
	if err != nil { // which may be under way
		return nil, false, err
	}
	return all, kept, nil
}

// call calls a procedure and returns the first field that it answers.
func (s *server) call(ctx context.Context, format string, args ...any) (string, bool, error) {
	a, err := s.send(ctx, "call "+s.options.Prefix+fmt.Sprintf(format, args...), "")
	switch {
	case err != nil:
		return "", a.twice, err
	case len(a.rows) == 0:
		return "", a.twice, errNothing
	}
	return string(a.rows[0][0]), a.twice, nil
}
