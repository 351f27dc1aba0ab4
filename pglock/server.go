package pglock

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/interlock-go/interlock/internal/rowline"
)

// server is a database and how it is asked. All techniques share it.
type server struct {
	source
	options    Options
	in         string      // begins the names of tables and functions in SQL
	turn       prepared    // the function that makes a step of a line
	strict     atomic.Bool // the default isolation level is not that of a step
	unprepared atomic.Bool // nothing is prepared, since a pooler that shares connections would lose it
}

func newServer(from source, options Options) *server {
	in := options.in()
	return &server{
		source: from, options: options, in: in,
		turn: prepare("select " + in + "turn($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"),
	}
}

// answer is what came of a request.
type answer struct {
	result
	twice bool // it was sent once more after an attempt of unknown outcome
}

// number reads a field that the functions of the schema always fill; null is 0.
func number[S string | []byte](field S) int64 {
	n, _ := strconv.ParseInt(string(field), 10, 64)
	return n
}

// step calls the function turn. The function looks at the isolation level itself and does nothing
// at a wrong one. So nothing sets the level as long as the default will do: to set it would cost a
// free lock a twentieth.
func (s *server) step(ctx context.Context, args ...[]byte) (answer, error) {
	if !s.strict.Load() {
		if a, err := s.send(ctx, message{args: args}); err != nil || string(a.rows[0][0]) != "8 f" {
			return a, err
		}
		s.strict.Store(true)
	}
	return s.call(ctx, s.spelled(args))
}

// spelled is a step as a statement of its own.
func (s *server) spelled(args [][]byte) string {
	b := []byte("select " + s.in + "turn(")
	for i, arg := range args {
		switch {
		case arg == nil:
			b = append(b, "null"...)
		case len(arg) > 0 && arg[0] == '\\': // bytes, whatever standard_conforming_strings is
			b = fmt.Appendf(b, `E'\%s'`, arg)
		default:
			b = fmt.Appendf(b, "'%s'", arg)
		}
		if i < len(args)-1 {
			b = append(b, ", "...)
		}
	}
	return string(append(b, ')'))
}

// call sends a statement at the isolation level READ COMMITTED.
func (s *server) call(ctx context.Context, sql string) (answer, error) {
	return s.send(ctx, message{sql: sql, careful: true})
}

// look makes a statement for people, who wait for Options.Timeout at most.
func (s *server) look(ctx context.Context, sql string) ([][][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	a, err := s.call(ctx, sql)
	return a.rows, err
}

// send sends a message as a request that is repeated: see [rowline.Request].
func (s *server) send(ctx context.Context, m message) (a answer, err error) {
	end, _ := ctx.Deadline() // of a context without a timer, perhaps
	broken, most := 0, 0
	request := rowline.Request{
		Send: func() (err error) {
			if m.args != nil {
				m.turn = &s.turn
				if s.unprepared.Load() {
					m = message{sql: s.spelled(m.args)}
				}
			}
			a.result, err = s.ask(ctx, end, m)
			return err
		},
		Fate: func(err error) rowline.Fate {
			switch {
			case m.args != nil && misprepared(err):
				s.unprepared.Store(true)
				return rowline.Undone
			case undone(err):
				// Each connection of the source may have ended unnoticed, and no more.
				if most = max(most, s.most()); broken > most {
					return rowline.Certain
				}
				broken++
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
