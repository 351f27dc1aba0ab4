package mysqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/lockname"
)

// TxOptions are those of [InTx]. The zero value is what most want.
type TxOptions struct {
	// Prefix begins the names of the tables and procedures, as in [Options].
	Prefix string
}

// InTx takes the lock of a name and holds it until the transaction ends, or rolls back to a
// savepoint from before. It waits while another holds it, as long as ctx and the transaction's
// innodb_lock_wait_timeout allow. The token is larger than those of all earlier holders, whichever
// transactions roll back, and, once this one has committed, whatever crashes. After an error the
// transaction has to be rolled back.
//
// At REPEATABLE READ, the server's default, a transaction reads what was there at its first SELECT.
// InTx should be before that: where others have held the lock since, it fails with an error that
// matches [driver.ErrNotSent], and the transaction is to be begun anew. At READ COMMITTED it may be
// anywhere.
//
// It excludes others who take the same name by InTx, or by technique rowlock, and nobody else. A
// name that a mutex cannot have is refused.
func InTx(ctx context.Context, tx *sql.Tx, name string, o *TxOptions) (fence uint64, err error) {
	if o == nil {
		o = &TxOptions{}
	}
	options, err := (&Options{Prefix: o.Prefix}).withDefaults()
	if err != nil {
		return 0, err
	}
	if err := lockname.Check(name); err != nil {
		return 0, fmt.Errorf("mysqllock: %w: %w", driver.ErrRefused, err)
	}
	if fence, err = hold(ctx, tx, name, &options); err != nil {
		return 0, fmt.Errorf("mysqllock: lock %q in a transaction: %w", name, err)
	}
	return fence, nil
}

var errStale = errors.New("somebody has held the lock since this transaction began to read: roll it back and begin anew, with the lock first")

// hold asks once: one round trip.
func hold(ctx context.Context, tx *sql.Tx, name string, o *Options) (uint64, error) {
	rows, err := results(ctx, tx, fmt.Sprintf("call %shold(x'%x')", o.Prefix, name))
	switch c := code(err); {
	case err == nil && len(rows) == 0:
		return 0, errNothing
	case c == changed: // by innodb_snapshot_isolation the server checks that, too
		return 0, fmt.Errorf("%w: %w: %w", driver.ErrNotSent, errStale, err)
	case c == lockTimeout:
		return 0, fmt.Errorf("%w: somebody else has had the lock as long as innodb_lock_wait_timeout lets a statement wait: roll the transaction back: %w", driver.ErrNotSent, err)
	case c == deadlock:
		return 0, fmt.Errorf("%w: the server has rolled the transaction back, for a deadlock: begin anew: %w", driver.ErrNotSent, err)
	case c == readOnly:
		return 0, fmt.Errorf("%w: the transaction is read-only: a lock in it guards no writes, and can draw no token: %w", driver.ErrRefused, err)
	case c == 1142 || c == 1370:
		return 0, fmt.Errorf("%w: the user needs EXECUTE of the procedures, SELECT, INSERT and UPDATE of %sheld, and SELECT, INSERT and DELETE of %[2]stoken: %w", driver.ErrRefused, o.Prefix, err)
	case c != 0:
		return 0, classify(err, o)
	case err != nil:
		return 0, err
	}
	state, token, _ := strings.Cut(string(rows[0][0]), " ")
	switch state {
	case "0":
		return 0, fmt.Errorf("%w: the transaction has ended already: by an error that rolled it back, or by a statement that commits, as CREATE, ALTER, DROP and their like do", driver.ErrRefused)
	case "1":
		return 0, fmt.Errorf("%w: %w", driver.ErrNotSent, errStale)
	}
	return uint64(integer(token)), nil //nolint:gosec // never negative
}
