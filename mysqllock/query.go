package mysqllock

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// reply is what came of a request: the rows of all results of its statement.
type reply struct {
	rows  [][][]byte
	twice bool // it was sent once more after an attempt of unknown outcome
	kept  bool // the keeper of the gates carried it out
}

// integer reads a field that the procedures always fill; null is 0.
func integer[S string | []byte](field S) int64 {
	n, _ := strconv.ParseInt(string(field), 10, 64)
	return n
}

// send sends a statement. What the server has certainly not carried out is sent again until ctx ends; what it may have carried out once,
// since every request may be repeated. A step in which a claim leaves that may have a gate goes by the latter's keeper.
func (d *Driver) send(ctx context.Context, statement, leaves string) (a reply, err error) {
	end, ok := ctx.Deadline()
	if !ok {
		end = time.Now().Add(d.options.Timeout)
	}
	for {
		a.rows, a.kept, err = d.ask(ctx, end, statement, leaves)
		switch {
		case err == nil:
			return a, nil
		case ctx.Err() != nil || !time.Now().Before(end):
		case undone(err):
			leaves = ""
			continue
		case unknown(err) && !a.twice:
			a.twice, leaves = true, ""
			continue
		}
		err = classify(err, &d.options)
		if a.twice && errors.Is(err, driver.ErrNotSent) { // the kind of the second attempt says nothing of the first
			err = fmt.Errorf("%s, after a request without an answer", err.Error())
		}
		return a, err
	}
}

// ask sends a statement over a connection of the pool, once. The client closes a connection whose context ends, and with it goes what came
// of the statement: so it is made apart from the caller, and awaited until end without him.
func (d *Driver) ask(ctx context.Context, end time.Time, statement, leaves string) ([][][]byte, bool, error) {
	var all [][][]byte
	var kept bool
	err := sessions.Aside(ctx, 0, func(context.Context) error {
		timed, cancel := context.WithDeadline(context.Background(), end)
		defer cancel()
		keeper, over := d.gates.turn(leaves)
		defer over()
		var err error
		all, err = d.once(timed, keeper, statement) //nolint:contextcheck // it outlives the caller
		if d.gates != nil && slices.Contains(full, code(err)) {
			all, err = d.gates.spare(timed, statement, err) //nolint:contextcheck // as above
		}
		kept = keeper != nil
		return err
	})
	if err != nil { // which may be under way
		return nil, false, err
	}
	return all, kept, nil
}

// once makes a statement on a connection, or on any.
func (d *Driver) once(ctx context.Context, c *sql.Conn, statement string) (all [][][]byte, err error) {
	if c == nil {
		if c, err = d.db.Conn(ctx); err != nil {
			return nil, unconnected{err}
		}
		defer func() { _ = c.Close() }()
	}
	all, err = results(ctx, c, statement)
	if err != nil && !slices.Contains(clean, code(err)) {
		discard(c)
	}
	return all, err
}

// querier is a connection, or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// results makes a statement and returns the rows of its results.
func results(ctx context.Context, q querier, statement string) (all [][][]byte, err error) {
	rows, err := q.QueryContext(ctx, statement)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for more := true; more; more = rows.NextResultSet() {
		columns, err := rows.Columns()
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			fields, to := make([][]byte, len(columns)), make([]any, len(columns))
			for i := range fields {
				to[i] = &fields[i]
			}
			if err := rows.Scan(to...); err != nil {
				return nil, err
			}
			all = append(all, fields)
		}
	}
	return all, rows.Err()
}

// discard has the pool close a connection.
func discard(c *sql.Conn) { _ = c.Raw(func(any) error { return sqldriver.ErrBadConn }) }

// Numbers of errors, which MariaDB and MySQL share below 1900.
const (
	lockTimeout, deadlock, changed = 1205, 1213, 1020
	inTransaction, statementBased  = 1568, 1665
	readOnly                       = 1792
	noThread, notOwner             = 1094, 1095
)

// clean are the errors after which a connection is as it was. After others, as of a statement that was killed, nobody knows.
var clean = []uint16{lockTimeout, deadlock, changed, inTransaction, statementBased}

// full are the errors of a server that grants no more connections: to anybody, or to this user.
var full = []uint16{1040, 1203, 1226}

// unconnected is an error of a statement that had no connection to be sent over.
type unconnected struct{ error }

func (u unconnected) Unwrap() error { return u.error }

// code is the number of an error that the server answered, or 0.
func code(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

// undone reports whether a statement may simply be sent again: it waited for a row in vain or lost to another one, as with
// innodb_snapshot_isolation who waited for a row that was changed, and was rolled back; or its connection had ended before it.
func undone(err error) bool {
	c := code(err)
	return c == lockTimeout || c == deadlock || c == changed || !errors.As(err, new(unconnected)) && errors.Is(err, sqldriver.ErrBadConn)
}

// unknown reports whether nobody can say what came of a statement: there was no answer, or it was ended from outside, where no handler of
// a procedure sees it: by a shutdown, an error of a commit, KILL, or a limit of its time.
func unknown(err error) bool {
	switch code(err) {
	case 0:
		return !errors.As(err, new(unconnected)) && !errors.Is(err, sqldriver.ErrBadConn)
	case 1053, 1180, 1317, 1927, 1969, 3024:
		return true
	}
	return false
}

// classify names what is certain, as the contract has it, and says what would be right. What the server answers with another error than an
// unknown one, it has rolled back.
func classify(err error, o *Options) error {
	if unknown(err) {
		return err
	}
	switch code(err) {
	case 1146, 1305:
		return fmt.Errorf("%w: no locks are kept there under the prefix %s: make the tables with interlock migrate --store URL, or mysqllock.Migrate: %w", driver.ErrRefused, o.Prefix, err)
	case 1142, 1143, 1370:
		needs := "SELECT of the tables, INSERT and UPDATE of %[2]slock, and INSERT, UPDATE and DELETE of %[2]ssession"
		if o.Technique == "session" || o.Technique == "rowlock" {
			needs = "SELECT of %[2]sversion, SELECT, INSERT and UPDATE of %[2]sheld, and SELECT, INSERT, UPDATE and DELETE of %[2]stoken"
		}
		return fmt.Errorf("%[1]w: the user needs EXECUTE of the procedures, "+needs+": %[3]w", driver.ErrRefused, o.Prefix, err)
	case 1044, 1045, 1130, 1698:
		return fmt.Errorf("%w: want a user that there is, with the password, in the URL as mysql://USER:PASSWORD@HOST/DATABASE, whom the server admits from here to the database: %w", driver.ErrRefused, err)
	case 1049:
		return fmt.Errorf("%w: want a database that there is, or make it: %w", driver.ErrRefused, err)
	case 0:
		if errors.Is(err, mysql.ErrNoTLS) {
			return fmt.Errorf("%w: want tls=false in the URL, or TLS in the server: %w", driver.ErrRefused, err)
		}
	case 3159:
		return fmt.Errorf("%w: want tls=true in the URL: %w", driver.ErrRefused, err)
	case 1064, 1406:
		return fmt.Errorf("%w: %w", driver.ErrRefused, err)
	case 1046:
		return fmt.Errorf("%w: the pool's connections name no database: %w", driver.ErrRefused, err)
	case statementBased:
		return fmt.Errorf("%w: the server logs statements: set binlog_format to ROW or MIXED: %w", driver.ErrRefused, err)
	case inTransaction:
		return fmt.Errorf("%w: a connection of the pool has a transaction open, which was begun without database/sql: %w", driver.ErrNotSent, err)
	case 1290, 1836:
		return fmt.Errorf("%w: the server is read-only: want its primary: %w", driver.ErrNotSent, err)
	case readOnly:
		return fmt.Errorf("%w: %w: transactions are read-only by default: %w", driver.ErrNotSent, driver.ErrUnable, err)
	case 3, 1021, 1026, 1037, 1041, 1114:
		return fmt.Errorf("%w: %w: %w", driver.ErrNotSent, driver.ErrUnable, err)
	}
	return fmt.Errorf("%w: %w", driver.ErrNotSent, err)
}
