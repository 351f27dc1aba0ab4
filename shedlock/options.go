package shedlock

import (
	"cmp"
	"database/sql"
	"fmt"
	"regexp"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/interlock-go/interlock/driver"
)

// Options of a driver. The zero value is what most want.
type Options struct {
	// Table is ShedLock's; default "shedlock". It may have a schema or a database before it, with a dot.
	Table string

	// Dialect is "postgres" or "mysql", which MariaDB speaks, too. It is needed only for a client that is neither pgx nor go-sql-driver/mysql.
	Dialect string

	// Timeout is how long the server may take for one answer, at most the TTL of a session; default 3 s.
	Timeout time.Duration
}

const defaultTimeout = 3 * time.Second

var tableName = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*\.)?[A-Za-z_][A-Za-z0-9_]*$`)

// newDriver reads the options and looks by which client the database is reached.
func newDriver(db *sql.DB, o *Options) (*Driver, error) {
	d := &Driver{db: db}
	if o != nil {
		d.options = *o
	}
	d.options.Table = cmp.Or(d.options.Table, "shedlock")
	d.options.Timeout = cmp.Or(max(d.options.Timeout, 0), defaultTimeout)
	if !tableName.MatchString(d.options.Table) {
		return nil, fmt.Errorf("shedlock: table %q: want a name of letters, digits and _, and perhaps a schema and a dot before it: %w", d.options.Table, driver.ErrRefused)
	}
	told := ""
	switch db.Driver().(type) {
	case *stdlib.Driver:
		told, d.simple = "postgres", []any{pgx.QueryExecModeSimpleProtocol} // which prepares nothing that a pooler would lose
	case *mysql.MySQLDriver:
		told = "mysql"
	}
	switch cmp.Or(d.options.Dialect, told) {
	case "postgres":
		d.dialect = &postgres
	case "mysql":
		d.dialect = &mariadb
	case "":
		return nil, fmt.Errorf("shedlock: of the client %T it is not known what database it speaks to: want Options.Dialect postgres or mysql: %w", db.Driver(), driver.ErrRefused)
	default:
		return nil, fmt.Errorf("shedlock: unknown dialect %q: want postgres or mysql: %w", d.options.Dialect, driver.ErrRefused)
	}
	return d, nil
}
