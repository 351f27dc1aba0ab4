package mysqllock

import (
	"context"
	"database/sql"
	"regexp"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/rowline"
)

// LeaveTogether has claims leave the line of a name by one request, and reports of each whether it
// was held until now.
func LeaveTogether(ctx context.Context, d driver.Driver, name string, all ...rowline.Member) ([]bool, error) {
	was, _, err := any(rows{d.(*Driver).server}).(rowline.BatchReleaser).ReleaseBatch(ctx, name, all, 5*time.Second)
	return was, err
}

var (
	forMariaDB = regexp.MustCompile(`(?s)/\*M! .*? \*/`)
	forMySQL   = regexp.MustCompile(`(?s)/\*!80000 (.*?) \*/`)
)

// asMySQL is a part of the schema as MySQL reads it.
func asMySQL(s string) string {
	return forMySQL.ReplaceAllString(forMariaDB.ReplaceAllString(s, ""), "$1")
}

// MigrateAsMySQL makes on a MariaDB what MySQL would have.
func MigrateAsMySQL(ctx context.Context, db *sql.DB) error {
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer discard(c)
	for _, s := range statements("interlock_") {
		if _, err := c.ExecContext(ctx, asMySQL(s)); err != nil {
			return err
		}
	}
	return nil
}

// Ungated has the driver take its server for one without GET_LOCK.
func Ungated(d driver.Driver) {
	of := d.(*Driver)
	of.gates.close()
	of.gates, of.sessions.Gates = nil, nil
}
