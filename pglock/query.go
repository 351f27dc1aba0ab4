package pglock

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/examine/database"
)

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

// step sends a step of a line, which looks itself whether it is at the isolation level that it needs and else does nothing: to set that is
// left out as long as the default will do, since it costs a free lock a twentieth.
func (d *Driver) step(ctx context.Context, args ...[]byte) (answer, error) {
	if !d.strict.Load() {
		if a, err := d.send(ctx, message{args: args}); err != nil || string(a.rows[0][0]) != "8 f" {
			return a, err
		}
		d.strict.Store(true)
	}
	return d.call(ctx, d.spelled(args))
}

// spelled is a step as a statement of its own.
func (d *Driver) spelled(args [][]byte) string {
	b := []byte("select " + d.in + "turn(")
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

// call sends a statement at the isolation level that it needs.
func (d *Driver) call(ctx context.Context, sql string) (answer, error) {
	return d.send(ctx, message{sql: sql, careful: true})
}

// send sends a message. What the server has certainly not carried out is sent again until ctx ends; what it may have carried out
// once, since every message may be repeated.
func (d *Driver) send(ctx context.Context, m message) (a answer, err error) {
	end, _ := ctx.Deadline() // of a context without a timer, perhaps
	for broken, most := 0, 0; ; {
		if m.args != nil {
			m.turn = &d.turn
			if d.unprepared.Load() {
				m = message{sql: d.spelled(m.args)}
			}
		}
		a.result, err = d.source.ask(ctx, end, m)
		switch {
		case err == nil:
			return a, nil
		case ctx.Err() != nil || !time.Now().Before(end):
		case m.args != nil && misprepared(err):
			d.unprepared.Store(true)
			continue
		case undone(err) && broken <= max(most, d.source.most()):
			broken, most = broken+1, max(most, d.source.most())
			continue
		case unknown(err) && !a.twice:
			a.twice = true
			continue
		}
		err = classify(err, &d.options)
		if a.twice && errors.Is(err, driver.ErrNotSent) { // the kind of the second attempt says nothing of the first
			err = fmt.Errorf("%s, after a request without an answer", err.Error())
		}
		return a, err
	}
}

// misprepared reports whether the server has lost what was prepared, or has what was not: the program discards what its connections
// have, or a pooler has come between. Nothing was done.
func misprepared(err error) bool {
	c := code(err)
	return c == "26000" || c == "42P05"
}

// unconnected is an error of a statement that had no connection to be sent over.
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

// undone reports whether a statement may simply be sent again: it lost to another one and was rolled back, or its connection had
// ended before it. A server that ends a connection, for an administrator or for having been idle, says so before it begins
// what comes then, or rolls back.
func undone(err error) bool {
	switch code(err) {
	case "40001", "40P01", "57P01", "57P05", "25P03":
		return true
	case "":
		return !errors.As(err, new(unconnected)) && pgconn.SafeToRetry(err)
	}
	return false
}

func errStandby() error {
	return &driver.FindingError{Finding: database.Standby(), Err: fmt.Errorf("%w: the server is a standby: want its primary", driver.ErrNotSent)}
}

// unknown reports whether nobody can say what came of a statement: there was no answer, the server crashed (57P02), or a pooler has lost it (08P01).
func unknown(err error) bool {
	if errors.As(err, new(unconnected)) {
		return false
	}
	c := code(err)
	return c == "57P02" || strings.HasPrefix(c, "08") || c == "" && !pgconn.SafeToRetry(err)
}

// classify names what is certain, as the contract has it, and says what would be right. What the server answers with an error, it has
// rolled back.
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
	case c == readOnly || c == "0A000": // the latter to whoever asks a standby to write
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
