package pglock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/interlock-go/interlock/driver"
)

var (
	errPooler = fmt.Errorf("%w: the server is behind a pooler that shares connections, where a lock belongs to nobody: use technique rows, or name the server itself by listen",
		driver.ErrRefused)
	errElsewhere = fmt.Errorf("%w: listen leads to another server or another database than the store's: want the same one", driver.ErrRefused)
)

// looks is how often a pooler is checked that seems to give each client a backend of its own. One
// that shares a busy backend shows it in one check of four at least.
const looks = 64

// keeps checks that a connection keeps its backend, or fails with errPooler. If the pid that greets
// is not the one that answers, a pooler is between. To ask twice who answers would show the same
// backend as long as nobody else uses the pooler. So at each check a transaction of another
// connection occupies a backend: as a rule the one that the first connection had, unless that is
// its own.
func (s *server) keeps(ctx context.Context, first *pgx.Conn) error {
	own, err := row(ctx, first, ping)
	if err != nil {
		return classify(err, &s.options)
	}
	if number(own[0]) == int64(first.PgConn().PID()) {
		return nil
	}
	second, err := s.connect(ctx, func(*pgx.ConnConfig) {})
	if err != nil {
		return classify(unconnected{err}, &s.options)
	}
	defer func() { _ = second.Close(ctx) }()
	for range looks {
		other, err := row(ctx, second, "begin; "+ping)
		if err != nil {
			return classify(err, &s.options)
		}
		again, err := row(ctx, first, ping)
		if err == nil && (string(other[0]) == string(own[0]) || string(again[0]) != string(own[0])) {
			err = errPooler
		}
		if _, undone := row(ctx, second, "rollback; "+ping); err == nil {
			err = undone
		}
		if err != nil {
			return classify(err, &s.options)
		}
	}
	return nil
}

// same checks that the server which Listen names has the locks of the source's database: what one
// has locked the other must not get.
func (s *server) same(ctx context.Context, named *pgx.Conn) error {
	key := strconv.FormatUint(rand.Uint64()>>1, 10)
	if _, err := row(ctx, named, "select pg_advisory_lock("+key+"); "+ping); err != nil {
		return classify(err, &s.options)
	}
	a, err := s.send(ctx, message{sql: "select pg_try_advisory_xact_lock(" + key + ")"})
	if err == nil && string(a.rows[0][0]) == "t" {
		err = errElsewhere
	}
	return err
}
