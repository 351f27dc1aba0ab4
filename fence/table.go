package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"

	"github.com/interlock-go/interlock/internal/mutant"
)

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
var identifier = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]{0,62}\.)?[A-Za-z_][A-Za-z0-9_]{0,62}$`)

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
	compare := "<="
	if mutant.On("F4") {
		compare = "<"
	}
	s, err := d.statements(name, compare)
	if err != nil {
		return nil, err
	}
	return &Table{name: name, sql: s}, nil
}

// Schema returns the statement that creates the table unless it exists, for the application's migrations.
func (t *Table) Schema() string { return t.sql.create }

// Claim stores token for name in a transaction of its own. It is for a holder that reads outside the transaction in
// which it will write; one that does both in one transaction needs [Table.Do] only. Errors match [ErrStale],
// [ErrNoToken], [ErrRange], or are the database's.
func (t *Table) Claim(ctx context.Context, db *sql.DB, name string, token uint64) error {
	return t.raise(ctx, db, name, token)
}

// Guard stores token for name inside the caller's transaction and keeps the name's row locked until its end. It must
// be the first statement: what was read before it may be old. After an error, as of [Table.Claim], the caller must
// roll back. A transaction that guards several names must do so in one order everywhere, by bytes say, or two of them
// can deadlock.
func (t *Table) Guard(ctx context.Context, tx *sql.Tx, name string, token uint64) error {
	return t.raise(ctx, tx, name, token)
}

// Do runs fn in a transaction that begins with [Table.Guard], and commits it if fn returns nil; otherwise, also on a
// panic, it rolls back. fn may read and write: the guard is its claim too. If the token is refused fn does not run.
// Do returns the guard's error, fn's as it is, or the database's; after an error of the commit the outcome is unknown.
func (t *Table) Do(ctx context.Context, db *sql.DB, name string, token uint64, fn func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // does nothing after Commit, and there is nobody to tell otherwise
	if mutant.On("F5") {
		if err := errors.Join(fn(tx), t.Guard(ctx, tx, name, token)); err != nil {
			return err
		}
		return tx.Commit()
	}
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
	return t.look(ctx, db, t.sql.look, name)
}

// conn is what *sql.DB and *sql.Tx have in common.
type conn interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func (t *Table) raise(ctx context.Context, c conn, name string, token uint64) error {
	if err := Valid(token); err != nil {
		return err
	}
	if len(name) == 0 || len(name) > 1024 {
		return fmt.Errorf("fence: name of %d bytes: want 1 to 1024", len(name))
	}
	res, err := c.ExecContext(ctx, t.sql.raise, name, int64(token))
	if err != nil {
		return fmt.Errorf("fence: storing the token of %q in table %s: %w", name, t.name, err)
	}
	if t.sql.counts {
		n, err := res.RowsAffected()
		if err != nil {
			return fmt.Errorf("fence: storing the token of %q in table %s: %w", name, t.name, err)
		}
		if n > 0 {
			return nil
		}
	}
	highest, err := t.look(ctx, c, t.sql.look+t.sql.locked, name)
	if err != nil {
		return err
	}
	if err := Check(name, highest, token); err != nil {
		return err
	}
	if t.sql.counts || highest != token {
		return fmt.Errorf("fence: the row of %q in table %s was changed by hand (refused %d, then saw %d)", name, t.name, token, highest)
	}
	return nil
}

func (t *Table) look(ctx context.Context, c conn, query, name string) (uint64, error) {
	var highest int64
	err := c.QueryRowContext(ctx, query, name).Scan(&highest)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("fence: reading the token of %q in table %s: %w", name, t.name, err)
	case highest < 0:
		return 0, fmt.Errorf("fence: the row of %q in table %s holds %d: want 0 or more", name, t.name, highest)
	}
	return uint64(highest), nil
}
