package mysqllock

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"slices"
	"strconv"
)

// integer reads a field that the procedures always fill; null is 0.
func integer[S string | []byte](field S) int64 {
	n, _ := strconv.ParseInt(string(field), 10, 64)
	return n
}

// once makes a statement on a connection or, without one, on any of the pool.
func once(ctx context.Context, db *sql.DB, c *sql.Conn, statement string) (all [][][]byte, err error) {
	if c == nil {
		if c, err = db.Conn(ctx); err != nil {
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
