package pglock

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/lockname"
)

// TxOptions are those of [InTx] and [InSQLTx]. The zero value is what most want.
type TxOptions struct {
	// Schema and Prefix are where the tables are, as in [Options].
	Schema, Prefix string

	// Advisory takes pg_advisory_xact_lock instead of the lock of a row. It excludes, and is
	// excluded by, who holds the name by technique session with the same Keys. It needs no tables,
	// but without them there are no tokens.
	Advisory bool
	Keys     string // as in [Options]

	// Isolation is the level of a transaction that is not READ COMMITTED. Such a one reads by a
	// snapshot from before it got the lock: what others have written under the lock since then it
	// does not see. The lock of a row then fails with a serialization error, SQLSTATE 40001, and
	// the transaction is to be rolled back and begun anew; an advisory lock cannot tell, and is
	// refused.
	Isolation pgx.TxIsoLevel
}

// InTx takes the lock of a name and holds it until the transaction ends, or rolls back to a
// savepoint from before. It waits while another holds it, as long as ctx and the transaction's
// lock_timeout allow; then the transaction has to be rolled back. The token is larger than those of
// all earlier holders, whichever transactions roll back, and, once this one has committed, whatever
// crashes.
//
// It excludes others who take the same name by InTx or [InSQLTx] in the same way, and nobody else:
// see TxOptions.Advisory. A name that a mutex cannot have is refused.
func InTx(ctx context.Context, tx pgx.Tx, name string, o *TxOptions) (fence uint64, err error) {
	return inTx(name, o, func(sql string, to ...any) error {
		return tx.QueryRow(ctx, sql, pgx.QueryExecModeExec).Scan(to...) // prepares nothing, which a pooler would lose
	})
}

// InSQLTx is [InTx] for database/sql, with any driver.
func InSQLTx(ctx context.Context, tx *sql.Tx, name string, o *TxOptions) (fence uint64, err error) {
	return inTx(name, o, func(sql string, to ...any) error { return tx.QueryRowContext(ctx, sql).Scan(to...) })
}

// inTx asks once: one round trip. What the lock would not be good for is refused before it is
// taken, and harms no transaction.
func inTx(name string, o *TxOptions, row func(sql string, to ...any) error) (uint64, error) {
	if o == nil {
		o = &TxOptions{}
	}
	options, err := (&Options{Schema: o.Schema, Prefix: o.Prefix}).withDefaults()
	if err != nil {
		return 0, err
	}
	of, err := convention(o.Keys)
	if err != nil {
		return 0, err
	}
	want := strings.ToLower(string(o.Isolation))
	switch levels := []string{"", "read committed", "repeatable read", "serializable"}; {
	case want == string(pgx.ReadUncommitted): // which is the same here
		want = string(pgx.ReadCommitted)
	case !slices.Contains(levels, want):
		return 0, fmt.Errorf("pglock: unknown isolation level %q: want one of%s", want, strings.Join(levels, ", ")[1:])
	case want == "" || o.Advisory:
		want = string(pgx.ReadCommitted)
	}
	if err := lockname.Check(name); err != nil {
		return 0, fmt.Errorf("pglock: %w: %w", driver.ErrRefused, err)
	}
	ask := fmt.Sprintf("select * from %shold(decode('%x', 'hex'), encode(decode('%x', 'hex'), 'escape'))", options.in(), name, want)
	if o.Advisory {
		k, err := of(name)
		if err != nil {
			return 0, err
		}
		// A case evaluates in order: the token is drawn under the lock.
		ask = fmt.Sprintf("select replace(current_setting('transaction_isolation'), 'uncommitted', 'committed'), current_setting('transaction_read_only')::boolean, "+
			"case when current_setting('transaction_isolation') in ('%s', 'read uncommitted') and not current_setting('transaction_read_only')::boolean and pg_advisory_xact_lock(%v) is not null "+
			"then coalesce(nextval(to_regclass('%stoken')), 0) end as fence", want, k, options.in())
	}
	var level string
	var readonly, behind bool
	var fence *int64
	err = row("select *, coalesce(fence < extract(epoch from clock_timestamp()) * 1000000 - 1000000, false) from ("+ask+") as held", &level, &readonly, &fence, &behind)
	if err == nil && behind && *fence > 0 { // after a failover, perhaps: a standby lacks what it had not got
		err = row(fmt.Sprintf("select nextval('%[1]stoken') from %[1]sadvance()", options.in()), &fence)
	}
	switch c := code(err); {
	case c == "25P02":
		err = fmt.Errorf("%w: the transaction has failed already: roll it back: %w", driver.ErrRefused, err)
	case c == "40001":
		err = fmt.Errorf("%w: somebody has held the lock since this transaction began to read: roll it back and begin anew: %w", driver.ErrNotSent, err)
	case c == "42501":
		err = fmt.Errorf("%w: the role needs USAGE of schema %s and of its sequence, and SELECT, INSERT and UPDATE of its table held: %w", driver.ErrRefused, options.Schema, err)
	case c != "":
		err = classify(err, &options)
	case err != nil:
	case readonly:
		err = fmt.Errorf("%w: the transaction is read-only: a lock in it guards no writes, and can draw no token", driver.ErrRefused)
	case level != want && o.Advisory:
		err = fmt.Errorf("%w: the transaction is %s, and reads what was before it got an advisory lock: want read committed", driver.ErrRefused, level)
	case level != want:
		err = fmt.Errorf("%w: the transaction is %s: want %s; others read what was before they got the lock: see TxOptions.Isolation", driver.ErrRefused, level, want)
	case fence != nil:
		return uint64(*fence), nil //nolint:gosec // never negative
	}
	return 0, fmt.Errorf("pglock: lock %q in a transaction: %w", name, err)
}
