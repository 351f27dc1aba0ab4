package shedlock

import (
	"cmp"
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

var tableName = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*\.)?[A-Za-z_][A-Za-z0-9_]*$`)

// configure takes in the options, and looks by which client the database is reached.
func (d *Driver) configure(o *Options) error {
	if o != nil {
		d.options = *o
	}
	d.options.Table = cmp.Or(d.options.Table, "shedlock")
	d.options.Timeout = cmp.Or(max(d.options.Timeout, 0), 3*time.Second)
	speaks := ""
	switch d.db.Driver().(type) {
	case *stdlib.Driver:
		speaks, d.simple = "postgres", []any{pgx.QueryExecModeSimpleProtocol} // which prepares nothing that a pooler would lose
	case *mysql.MySQLDriver:
		speaks = "mysql"
	}
	d.dialect = map[string]*dialect{"postgres": &postgres, "mysql": &mariadb}[cmp.Or(d.options.Dialect, speaks)]
	switch {
	case !tableName.MatchString(d.options.Table):
		return fmt.Errorf("%w: table %q: want letters, digits and _, and perhaps a schema or database and a dot before it", driver.ErrRefused, d.options.Table)
	case d.dialect == nil:
		return fmt.Errorf("%w: dialect %q of the client %T: want Options.Dialect postgres or mysql", driver.ErrRefused, d.options.Dialect, d.db.Driver())
	}
	return nil
}
