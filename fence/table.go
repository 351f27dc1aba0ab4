package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/internal/lazyregexp"
)

// ErrUnclaimed is matched by the error of [Table.Guard] for a name that no token was ever claimed for, so that the table
// has no row to lock. Roll back, call [Table.Claim], begin again; [Table.Do] does so by itself.
var ErrUnclaimed = errors.New("fence: unclaimed name")

// A Table keeps the highest token seen of any number of names in a table of the database whose rows they guard:
//
//	CREATE TABLE fence (name TEXT NOT NULL PRIMARY KEY, token BIGINT NOT NULL)
//
// [Table.Schema] has the statement for each dialect. A name stands for whatever the lock of that name protects, one
// row or a hundred tables. The row of the name is the first thing a transaction touches, so its row lock also puts the
// writers in order. Rows must not be deleted while an earlier holder may still run. A Table is
// immutable and may be used concurrently.
type Table struct {
	name string
	sql  statements
}

// identifier is the allow-list for table names: nothing in it needs quoting, so nothing can escape from it.
var identifier = lazyregexp.New(`^([A-Za-z_][A-Za-z0-9_]{0,62}\.)?[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// NewTable returns the table of fences called name, "fence" if name is empty. A name is letters, digits and
// underscores, at most 63, not beginning with a digit, optionally after a schema and a dot; it must not be a word
// reserved in SQL. Nothing is sent to a database.
func NewTable(d Dialect, name string) (*Table, error) {
	if name == "" {
		name = "fence"
	}
	if !identifier.MatchString(name) {
		return nil, fmt.Errorf("fence: table name %q: want letters, digits and underscores, optionally after a schema and a dot", name)
	}
	s, err := d.statements(name)
	if err != nil {
		return nil, err
	}
	return &Table{name: name, sql: s}, nil
}

// Schema returns the statement that creates the table unless it exists, for the application's migrations.
func (t *Table) Schema() string { return t.sql.create }

// Claim stores token for name in a transaction of its own, and makes the row on a name's first use. It is for a holder
// that reads outside the transaction in which it will write; one that does both in one transaction needs [Table.Do]
// only. Errors match [ErrStale], [ErrNoToken], [ErrRange], or are the database's.
func (t *Table) Claim(ctx context.Context, db *sql.DB, name string, token uint64) error {
	err := t.raise(ctx, db, name, token)
	if !errors.Is(err, ErrUnclaimed) {
		return err
	}
	// Rows are made here and nowhere else, by a statement that is committed by itself. Inside a longer transaction
	// MySQL would deadlock: two that looked at a missing row each lock the gap that the other wants to fill, and when
	// the one that filled it rolls back, all who waited for the row inherit its gap.
	if _, err := db.ExecContext(ctx, t.sql.insert, name, int64(token)); err != nil {
		return t.failed("storing", name, err)
	}
	return t.raise(ctx, db, name, token) // another holder's row may have been first
}

// Guard stores token for name inside the caller's transaction and keeps the name's row locked until its end. It must
// be the first statement: what was read before it may be old. After an error, which is as of [Table.Claim] or matches
// [ErrUnclaimed], the caller must roll back. A transaction that guards several names must do so in one order
// everywhere, by bytes say, or two of them can deadlock.
func (t *Table) Guard(ctx context.Context, tx *sql.Tx, name string, token uint64) error {
	return t.raise(ctx, tx, name, token)
}

// Do runs fn in a transaction that begins with [Table.Guard], and commits it if fn returns nil; otherwise, also on a
// panic, it rolls back. fn may read and write: the guard is its claim too. If the token is refused fn does not run.
// On a name's first use Do claims it, and this claim stays whatever becomes of fn. Do returns the guard's error, fn's
// as it is, or the database's; after an error of the commit the outcome is unknown.
func (t *Table) Do(ctx context.Context, db *sql.DB, name string, token uint64, fn func(tx *sql.Tx) error) error {
	err := t.once(ctx, db, name, token, fn)
	if !errors.Is(err, ErrUnclaimed) {
		return err
	}
	if err := t.Claim(ctx, db, name, token); err != nil {
		return err
	}
	return t.once(ctx, db, name, token, fn)
}

// once is Do for a name that has a row; for one that has none it matches ErrUnclaimed, and fn has not run.
func (t *Table) once(ctx context.Context, db *sql.DB, name string, token uint64, fn func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // does nothing after Commit, and there is nobody to tell otherwise
	if err := t.Guard(ctx, tx, name, token); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Highest returns the highest token seen for name, 0 if none was, as now committed.
func (t *Table) Highest(ctx context.Context, db *sql.DB, name string) (uint64, error) {
	highest, _, err := t.see(ctx, db, t.sql.look, name)
	return highest, err
}

// conn is what *sql.DB and *sql.Tx have in common.
type conn interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// raise runs the guarding statement, and where that touches no row finds out why: the row is missing, or the token is
// stale, or MySQL, which counts rows that changed, was given an equal one. The look locks the row, so what it
// sees stays true to the end of a transaction, also of one that has read before and would be shown an old row.
func (t *Table) raise(ctx context.Context, c conn, name string, token uint64) error {
	if err := Valid(token); err != nil {
		return err
	}
	if len(name) == 0 || len(name) > 1024 {
		return fmt.Errorf("fence: name of %d bytes: want 1 to 1024", len(name))
	}
	for range 3 {
		res, err := c.ExecContext(ctx, t.sql.raise, int64(token), name, int64(token))
		if err != nil {
			return t.failed("storing", name, err)
		}
		n, err := res.RowsAffected()
		if err != nil {
			return t.failed("storing", name, err)
		}
		if n > 0 {
			return nil
		}
		highest, found, err := t.see(ctx, c, t.sql.lock, name)
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("%w: table %s has no token of %q: Claim it first", ErrUnclaimed, t.name, name)
		}
		if err := Check(name, highest, token); err != nil || highest == token {
			return err
		}
		// The row was made between the two statements, with a smaller token.
	}
	return fmt.Errorf("fence: the row of %q in table %s does not take token %d: want no triggers on it", name, t.name, token)
}

// see returns the highest token of name, if there is a row.
func (t *Table) see(ctx context.Context, c conn, query, name string) (seen uint64, found bool, err error) {
	var highest int64
	err = c.QueryRowContext(ctx, query, name).Scan(&highest)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, false, nil
	case err != nil:
		return 0, false, t.failed("reading", name, err)
	case highest < 0:
		return 0, false, fmt.Errorf("fence: the row of %q in table %s holds %d: want 0 or more", name, t.name, highest)
	}
	return uint64(highest), true, nil
}

func (t *Table) failed(doing, name string, err error) error {
	return fmt.Errorf("fence: %s the token of %q in table %s: %w", doing, name, t.name, err)
}
