package pglock

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/examine/database"
)

// misprepared reports whether the server does not have a statement that was prepared, or has one
// that was not: the program discards what its connections have prepared, or a pooler is between.
// Nothing was done.
func misprepared(err error) bool {
	c := code(err)
	return c == "26000" || c == "42P05"
}

// unconnected is the error of a statement for which there was no connection.
type unconnected struct{ error }

func (u unconnected) Unwrap() error { return u.error }

// readOnly is the SQLSTATE of a server that does not write.
const readOnly = "25006"

// code is the SQLSTATE of an error that the server answered, or "".
func code(err error) string {
	var e interface{ SQLState() string } // pgx's, or another client's
	if errors.As(err, &e) {
		return e.SQLState()
	}
	return ""
}

// undone reports whether a statement may simply be sent again: it lost to another one and was
// rolled back, or its connection had ended before it. A server that ends a connection, for an
// administrator or for having been idle, says so before it begins what comes then, or rolls back.
func undone(err error) bool {
	switch code(err) {
	case "40001", "40P01", "57P01", "57P05", "25P03":
		return true
	case "":
		return !errors.As(err, new(unconnected)) && pgconn.SafeToRetry(err)
	}
	return false
}

// unknown reports whether the outcome of a statement is unknown: there was no answer, the server
// crashed (57P02), or a pooler has lost the server (08P01).
func unknown(err error) bool {
	if errors.As(err, new(unconnected)) {
		return false
	}
	c := code(err)
	return c == "57P02" || strings.HasPrefix(c, "08") || c == "" && !pgconn.SafeToRetry(err)
}

// classify returns the error by its kind, as package driver has them, and says what would be right.
// A statement that the server answers with an error is rolled back.
func classify(err error, o *Options) error {
	if unknown(err) {
		return err
	}
	switch c := code(err); {
	case c == "42704" && errors.As(err, new(unconnected)):
		return &driver.URLError{Err: fmt.Errorf("%w: what is neither a parameter of ours nor one of the client is asked of the server, which does not know it: %w", driver.ErrRefused, err)}
	case c == "42P01" || c == "3F000" || c == "42883" || c == "42704":
		return fmt.Errorf("%w: no locks are kept in %s: make its tables with interlock migrate --store URL, or pglock.Migrate: %w", driver.ErrRefused, o.where(), err)
	case c == "42501" && o.Technique != "" && o.Technique != "rows":
		return fmt.Errorf("%w: the role needs USAGE of schema %s, SELECT of its table version, SELECT, USAGE and UPDATE of its sequence, and for rowlock SELECT, INSERT and UPDATE of its table held: %w",
			driver.ErrRefused, o.Schema, err)
	case c == "42501":
		return fmt.Errorf("%w: the role needs USAGE of schema %s, SELECT, INSERT and UPDATE of its tables, and DELETE of sessions: %w", driver.ErrRefused, o.Schema, err)
	case c == readOnly && errors.Is(err, driver.ErrUnable):
		return fmt.Errorf("%w: %w", driver.ErrNotSent, err)
	case c == readOnly || c == "0A000": // the latter in answer to a write at a standby
		return fmt.Errorf("%w: the server is read-only: want its primary: %w", driver.ErrNotSent, err)
	case strings.HasPrefix(c, "53") && c != "53300":
		return fmt.Errorf("%w: %w: %w", driver.ErrNotSent, driver.ErrUnable, err)
	case c == "28P01":
		return fmt.Errorf("%w: want the role's password, in the URL as postgres://ROLE:PASSWORD@HOST/DATABASE or where libpq looks for it, as PGPASSWORD or ~/.pgpass: %w", driver.ErrRefused, err)
	case strings.HasPrefix(c, "28"):
		return fmt.Errorf("%w: want a role that there is, and whom the server's pg_hba.conf admits to this database from here: by TLS alone where that says hostssl, which is sslmode=require in the URL: %w", driver.ErrRefused, err)
	case c == "" && strings.Contains(err.Error(), "server refused TLS connection"): // for which pgx has no other word
		return fmt.Errorf("%w: the server has no TLS: turn it on there, or in the URL want sslmode=disable in place of the one that asks for it: %w", driver.ErrRefused, err)
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return fmt.Errorf("%w: want in the URL the HOST that the server's certificate names, and sslrootcert=FILE with who signed that: %w", driver.ErrRefused, err)
	case c == "3D000" || strings.HasPrefix(c, "22") || strings.HasPrefix(c, "23") || strings.HasPrefix(c, "42"):
		return fmt.Errorf("%w: %w", driver.ErrRefused, err)
	}
	return fmt.Errorf("%w: %w", driver.ErrNotSent, err)
}

// errStandby is the error of an opening at a standby.
func errStandby() error {
	return &driver.FindingError{Finding: database.Standby(), Err: fmt.Errorf("%w: the server is a standby: want its primary", driver.ErrNotSent)}
}

// errReadOnly marks the error of a server that would write by another default.
func errReadOnly(err error) error {
	return fmt.Errorf("%w: the default of the database or the role is read-only: %w", driver.ErrUnable, err)
}

// unchanged is classify for a request that only reads: without an answer, it has changed nothing.
func unchanged(err error) error {
	if unknown(err) && !errors.Is(err, driver.ErrNotSent) && !errors.Is(err, driver.ErrRefused) {
		return fmt.Errorf("%w: %w", driver.ErrNotSent, err)
	}
	return err
}

// stale is the error of a connection that had ended before anything was sent over it.
type stale struct{ error }

func (stale) SafeToRetry() bool { return true }

// unread is the error of a message that was sent and whose answer cannot be read.
type unread struct{ error }

func (u unread) Unwrap() error { return u.error }

// SafeToRetry says what pgconn gets wrong where it does not know that something was sent.
func (unread) SafeToRetry() bool { return false }
