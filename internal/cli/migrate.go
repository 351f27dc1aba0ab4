package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5/pgxpool"

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
	u, err := url.Parse(storeURL)
	database := err == nil && (u.Scheme == "postgres" || u.Scheme == "postgresql")
	switch {
	case !database && c.Print:
		storeURL = "postgres://" // what is printed asks no server
	case !database:
		return usage("only a database has tables: want --store postgres://USER@HOST/DATABASE")
	}
	config, o, err := pglock.ParseURL(storeURL)
	if err != nil {
		return usage("%v", err)
	}
	if c.Print {
		sql, err := pglock.Schema(o)
		if err != nil {
			return usage("%v", err)
		}
		fmt.Fprintf(t.out, "begin;\n\n%s\ncommit;\n", sql)
		return nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return &exitError{exitStore, err}
	}
	defer pool.Close()
	if err := pglock.Migrate(ctx, pool, o); err != nil {
		return &exitError{exitStore, err}
	}
	fmt.Fprintf(t.out, "schema %s has all that keeps locks\n", cmp.Or(o.Schema, "interlock"))
	return nil
}
