package cli

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"net/url"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/mysqllock"
	"github.com/interlock-go/interlock/pglock"
)

type migrateCommand struct {
	Print bool `help:"Print the SQL that makes everything in an empty database, and change nothing."`
}

// Run makes the tables of a store that keeps locks in tables, or brings them to the version of this program.
func (c *migrateCommand) Run(ctx context.Context, t terminal, line *commandLine) error {
	storeURL, warning, err := line.url()
	if err != nil {
		return err
	}
	if warning != "" {
		fmt.Fprintf(t.err, "interlock: warning: %s\n", warning)
	}
	if storeURL, _, err = driver.CutFenceBase(storeURL); err != nil { // which stands in no table
		return usage("%v", err)
	}
	u, err := url.Parse(storeURL)
	switch {
	case err == nil && u.Scheme == "mysql":
		return c.inMySQL(ctx, t, storeURL)
	case err == nil && (u.Scheme == "postgres" || u.Scheme == "postgresql"):
	case c.Print:
		storeURL = "postgres://" // what is printed asks no server
	default:
		return usage("only a database has tables: want --store postgres://USER@HOST/DATABASE or mysql://USER@HOST/DATABASE")
	}
	config, o, err := pglock.ParseURL(storeURL)
	if err != nil {
		return usage("%v", err)
	}
	if c.Print {
		text, err := pglock.Schema(o)
		if err != nil {
			return usage("%v", err)
		}
		fmt.Fprintf(t.out, "begin;\n\n%s\ncommit;\n", text)
		return nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return storeError(err)
	}
	defer pool.Close()
	if err := pglock.Migrate(ctx, pool, o); err != nil {
		return storeError(err)
	}
	fmt.Fprintf(t.out, "schema %s has all that keeps locks\n", cmp.Or(o.Schema, "interlock"))
	return nil
}

// mysql does it for a MariaDB or MySQL.
func (c *migrateCommand) inMySQL(ctx context.Context, t terminal, storeURL string) error {
	config, o, err := mysqllock.ParseURL(storeURL)
	if err != nil {
		return usage("%v", err)
	}
	if c.Print {
		text, err := mysqllock.Schema(o)
		if err != nil {
			return usage("%v", err)
		}
		fmt.Fprint(t.out, text)
		return nil
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return usage("%v", err)
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	if err := mysqllock.Migrate(ctx, db, o); err != nil {
		return storeError(err)
	}
	fmt.Fprintf(t.out, "database %s has all that keeps locks\n", config.DBName)
	return nil
}
