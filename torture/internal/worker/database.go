//go:build linux || darwin

package worker

import (
	"context"
	"database/sql"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/interlock-go/interlock/mysqllock"
	"github.com/interlock-go/interlock/pglock"
)

// database is where a txWorker has its transactions: a PostgreSQL or a MariaDB, by the client that
// its programs use.
type database interface {
	begin(ctx context.Context) (transaction, error)
	close()
}

// transaction locks a name, and reads and writes the one row of the table torture.
type transaction interface {
	lock(ctx context.Context, name string) (token uint64, err error)
	read(ctx context.Context) (n, token int64, err error)
	write(ctx context.Context, n, token int64) error
	commit(ctx context.Context) error
	rollback(ctx context.Context)
}

// database connects to the database of the job.
func (j Job) database(ctx context.Context) (database, error) {
	if !strings.HasPrefix(j.Store, "mysql:") {
		pool, err := pgxpool.New(ctx, j.Store)
		return pgPool{pool, j.Tx == ByAdvisory}, err
	}
	c, _, err := mysqllock.ParseURL(j.Store)
	if err != nil {
		return nil, err
	}
	c.InterpolateParams = true
	c.ReadTimeout = 10 * j.TTL // of a commit, too, which has no context
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	return myPool{sql.OpenDB(connector)}, nil
}

type pgPool struct {
	*pgxpool.Pool
	advisory bool
}

func (p pgPool) close() { p.Close() }

func (p pgPool) begin(ctx context.Context) (transaction, error) {
	tx, err := p.Begin(ctx)
	return pgTx{tx, p.advisory}, err
}

type pgTx struct {
	pgx.Tx
	advisory bool
}

func (t pgTx) lock(ctx context.Context, name string) (uint64, error) {
	return pglock.InTx(ctx, t.Tx, name, &pglock.TxOptions{Advisory: t.advisory})
}

func (t pgTx) read(ctx context.Context) (n, token int64, err error) {
	err = t.QueryRow(ctx, "select n, token from torture").Scan(&n, &token)
	return n, token, err
}

func (t pgTx) write(ctx context.Context, n, token int64) error {
	_, err := t.Exec(ctx, "update torture set n = $1, token = $2", n, token)
	return err
}

func (t pgTx) commit(ctx context.Context) error { return t.Commit(ctx) }
func (t pgTx) rollback(ctx context.Context)     { _ = t.Rollback(ctx) }

type myPool struct{ *sql.DB }

func (p myPool) close() { _ = p.Close() }

// begin begins a transaction at the level of the server, REPEATABLE READ. It ends with ctx.
func (p myPool) begin(ctx context.Context) (transaction, error) {
	tx, err := p.BeginTx(ctx, nil)
	return myTx{tx}, err
}

type myTx struct{ *sql.Tx }

func (t myTx) lock(ctx context.Context, name string) (uint64, error) {
	return mysqllock.InTx(ctx, t.Tx, name, nil)
}

func (t myTx) read(ctx context.Context) (n, token int64, err error) {
	err = t.QueryRowContext(ctx, "select n, token from torture").Scan(&n, &token)
	return n, token, err
}

func (t myTx) write(ctx context.Context, n, token int64) error {
	_, err := t.ExecContext(ctx, "update torture set n = ?, token = ?", n, token)
	return err
}

func (t myTx) commit(context.Context) error { return t.Commit() }
func (t myTx) rollback(context.Context)     { _ = t.Rollback() }
