package pglock

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// dbSource is a sql.DB, by pgx's client or another one.
type dbSource struct{ *sql.DB }

func (d dbSource) most() int { return d.Stats().OpenConnections }
func (d dbSource) close()    {} // it is the program's

// ask implements source. Package sql closes a connection whose context ends, and with it goes what
// came of the statement: so the statement is made apart from its caller.
func (d dbSource) ask(ctx context.Context, end time.Time, m message) (result, error) {
	var r result
	err := sessions.Aside(ctx, 0, func(context.Context) (err error) {
		timed, cancel := context.WithDeadline(context.Background(), end)
		defer cancel()
		r, err = d.once(timed, m)
		return err
	})
	if err != nil {
		return result{}, err
	}
	return r, nil
}

// native returns pgx's connection below one of package sql, or nil.
func native(c *sql.Conn) (pc *pgx.Conn) {
	_ = c.Raw(func(under any) error {
		if by, ok := under.(interface{ Conn() *pgx.Conn }); ok {
			pc = by.Conn()
		}
		return nil
	})
	return pc
}

// once sends a statement over a connection.
func (d dbSource) once(ctx context.Context, m message) (r result, err error) {
	c, err := d.Conn(ctx)
	if err != nil {
		return r, unconnected{err}
	}
	defer func() { _ = c.Close() }()
	var simple []any // prepares nothing, which a pooler would lose
	if pc := native(c); pc != nil {
		simple, r.greeted = []any{pgx.QueryExecModeSimpleProtocol}, int64(pc.PgConn().PID())
	} else if err := c.PingContext(ctx); err != nil { // of an error later on it does not say whether the statement was sent
		return r, stale{err}
	}
	if m.careful {
		r.rows, err = careful(ctx, c, m.sql, simple)
	} else {
		r.rows, err = texts(ctx, c, m.sql, simple)
	}
	switch {
	case errors.Is(err, sqldriver.ErrBadConn) && simple != nil: // pgx says so of what was not sent
		err = stale{err}
	case code(err) == readOnly:
		err = d.refused(ctx, c, err)
	}
	return r, err
}

// careful costs two round trips more, those that begin and commit.
func careful(ctx context.Context, c *sql.Conn, statement string, simple []any) ([][][]byte, error) {
	tx, err := c.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return nil, stale{err}
	}
	rows, err := texts(ctx, tx, statement, simple)
	if err != nil {
		_ = tx.Rollback()
		return nil, err
	}
	return rows, tx.Commit()
}

// texts reads the rows of a statement, each field as PostgreSQL writes it.
func texts(ctx context.Context, by interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}, statement string, simple []any,
) (all [][][]byte, err error) {
	rows, err := by.QueryContext(ctx, statement, simple...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		fields, to := make([]any, len(columns)), make([]any, len(columns))
		for i := range fields {
			to[i] = &fields[i]
		}
		if err := rows.Scan(to...); err != nil {
			return nil, err
		}
		row := make([][]byte, len(fields))
		for i, field := range fields {
			switch v := field.(type) {
			case nil:
			case bool:
				row[i] = []byte(strconv.FormatBool(v)[:1])
			case []byte:
				row[i] = v
			default:
				row[i] = fmt.Append(nil, v)
			}
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// refused drops a connection to a server that does not write, unless it would by another default.
func (d dbSource) refused(ctx context.Context, c *sql.Conn, err error) error {
	var off, recovers bool
	look := c.QueryRowContext(ctx, "select current_setting('default_transaction_read_only')::boolean, pg_is_in_recovery()").Scan(&off, &recovers)
	if look == nil && off && !recovers {
		return errReadOnly(err)
	}
	_ = c.Raw(func(any) error { return sqldriver.ErrBadConn })
	return err
}

// connect implements source. Of pgx's client it takes the connection string that a connection of
// the program was made by just now.
func (d dbSource) connect(ctx context.Context, change func(*pgx.ConnConfig)) (*pgx.Conn, error) {
	c, err := d.Conn(ctx)
	if err != nil {
		return nil, err
	}
	pc := native(c)
	_ = c.Close()
	if pc == nil {
		return nil, fmt.Errorf("%w: connections of our own cannot be made as this client of package sql makes its: name the server by Options.Listen", driver.ErrRefused)
	}
	config := pc.Config()
	change(config)
	return pgx.ConnectConfig(ctx, config)
}
