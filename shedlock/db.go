package shedlock

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/interlock-go/interlock/driver"
)

// ask makes a statement. One that lost to another and was rolled back is made again.
func (d *Driver) ask(ctx context.Context, statement func(ctx context.Context) error) error {
	if end, ok := ctx.Deadline(); ok { // of a context without a timer, perhaps
		timed, cancel := context.WithDeadline(ctx, end)
		defer cancel()
		ctx = timed
	}
	for tried := 0; ; tried++ {
		err := statement(ctx)
		if c := code(err); ctx.Err() != nil || tried == 10 || c != "40001" && c != "40P01" && !is(err, 1020) {
			return d.classify(err)
		}
	}
}

// exec makes a statement that writes, and returns how many rows it has changed.
func (d *Driver) exec(ctx context.Context, statement string) (n int64, err error) {
	return n, d.ask(ctx, func(ctx context.Context) error {
		r, err := d.db.ExecContext(ctx, statement, d.simple...)
		if err == nil {
			n, err = r.RowsAffected()
		}
		return err
	})
}

// code is the SQLSTATE of an error that the server answered, or "".
func code(err error) string {
	var my *mysql.MySQLError
	var e interface{ SQLState() string } // pgx's, or another client's
	switch {
	case errors.As(err, &my):
		return string(my.SQLState[:])
	case errors.As(err, &e):
		return e.SQLState()
	}
	return ""
}

// is reports whether err is one of these errors of MySQL and MariaDB.
func is(err error, numbers ...uint16) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && slices.Contains(numbers, e.Number)
}

// unknown reports whether nobody can say what came of a statement: there was no answer, or the server crashed (57P02). Package sql has
// taken another connection for one that had ended before it.
func unknown(err error) bool {
	var dial *net.OpError
	c := code(err)
	return c == "57P02" || c == "" && !errors.Is(err, sqldriver.ErrBadConn) && !pgconn.SafeToRetry(err) && (!errors.As(err, &dial) || dial.Op != "dial")
}

// classify names what is certain, as the contract has it, and says what would be right. What the server answers with an error, it has rolled back.
func (d *Driver) classify(err error) error {
	c, kind, want := code(err), driver.ErrRefused, "want what the server can do"
	switch {
	case err == nil || unknown(err):
		return err
	case c == "42P01" || c == "42S02":
		want = d.missing()
	case c == "42704" || is(err, 1193):
		want = "what is neither a parameter of ours nor one of the client is asked of the server, which does not know it"
	case c == "42501" || is(err, 1142, 1143):
		want = "the user needs SELECT, INSERT and UPDATE of table " + d.options.Table
	case strings.HasPrefix(c, "28") || is(err, 1044):
		want = "want a user that there is, with its password, whom the server admits from here to the database"
	case strings.HasPrefix(c, "53") && c != "53300" || is(err, 1021, 1114):
		kind, want = driver.ErrNotSent, driver.ErrUnable.Error()
	case c == "25006" || is(err, 1290, 1792, 1836):
		kind, want = driver.ErrNotSent, "the server is read-only: want its primary"
	case c == "" || !slices.Contains([]string{"3D", "22", "23", "42"}, c[:2]):
		return fmt.Errorf("%w: %w", driver.ErrNotSent, err)
	}
	return fmt.Errorf("%w: %s: %w", kind, want, err)
}

// missing says how the table is made.
func (d *Driver) missing() string {
	return fmt.Sprintf("there is no table %s: make it as ShedLock says, %s", d.options.Table, fmt.Sprintf(d.dialect.create, d.options.Table))
}
