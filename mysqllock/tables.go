package mysqllock

import (
	"context"
	"database/sql"

	"github.com/go-sql-driver/mysql"

	"github.com/interlock-go/interlock/driver"
)

// migrateStore is [Migrate] for the store of a URL.
func migrateStore(ctx context.Context, config *mysql.Config, o *Options) (where string, err error) {
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return "", &driver.URLError{Err: err}
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	return "database " + config.DBName, Migrate(ctx, db, o)
}
