package mysqllock

import (
	"context"
	"database/sql"

	"github.com/go-sql-driver/mysql"

	"github.com/interlock-go/interlock/driver"
)

// schemaOf is [Schema] for the store of a URL.
func schemaOf(rawURL string) (string, error) {
	_, o, err := ParseURL(rawURL)
	if err != nil {
		return "", &driver.URLError{Err: err}
	}
	text, err := Schema(o)
	if err != nil {
		return "", &driver.URLError{Err: err}
	}
	return text, nil
}

// migrateURL is [Migrate] for the store of a URL.
func migrateURL(ctx context.Context, rawURL string) (where string, err error) {
	config, o, err := ParseURL(rawURL)
	if err != nil {
		return "", &driver.URLError{Err: err}
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return "", &driver.URLError{Err: err}
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	return "database " + config.DBName, Migrate(ctx, db, o)
}
