package mysqllock

import (
	sqldriver "database/sql/driver"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"

	"github.com/interlock-go/interlock/driver"
)

// Numbers of errors, which MariaDB and MySQL share below 1900.
const (
	lockTimeout, deadlock, changed = 1205, 1213, 1020
	inTransaction, statementBased  = 1568, 1665
	readOnly                       = 1792
	noThread, notOwner             = 1094, 1095
)

// clean are the errors after which a connection is as it was. After others, as of a statement that
// was killed, nobody knows.
var clean = []uint16{lockTimeout, deadlock, changed, inTransaction, statementBased}

// full are the errors of a server that grants no more connections: to anybody, or to this user.
var full = []uint16{1040, 1203, 1226}

// unconnected is the error of a statement for which there was no connection.
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

// undone reports whether a statement may simply be sent again. Its connection had ended before it;
// or it waited for a row in vain, lost to another one or, with innodb_snapshot_isolation, waited
// for a row that was changed, and was rolled back.
func undone(err error) bool {
	c := code(err)
	return c == lockTimeout || c == deadlock || c == changed || !errors.As(err, new(unconnected)) && errors.Is(err, sqldriver.ErrBadConn)
}

// unknown reports whether the outcome of a statement is unknown: there was no answer, or it was
// ended from outside, where no handler of a procedure sees it: by a shutdown, an error of a commit,
// KILL, or a limit of its time.
func unknown(err error) bool {
	switch code(err) {
	case 0:
		return !errors.As(err, new(unconnected)) && !errors.Is(err, sqldriver.ErrBadConn)
	case 1053, 1180, 1317, 1927, 1969, 3024:
		return true
	}
	return false
}

// classify returns the error by its kind, as package driver has them, and says what would be right.
// A statement that the server answers with an error is rolled back, unless its outcome is unknown.
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

var errNothing = errors.New("the server answered nothing")

// unchanged is classify for a request that only reads: without an answer, it has changed nothing.
func unchanged(err error) error {
	if unknown(err) && !errors.Is(err, driver.ErrNotSent) && !errors.Is(err, driver.ErrRefused) && !errors.Is(err, errNothing) {
		return fmt.Errorf("%w: %w", driver.ErrNotSent, err)
	}
	return err
}
