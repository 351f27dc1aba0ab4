package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/tables"
)

type migrateCommand struct {
	Print bool `help:"Print the SQL that makes everything in an empty database, and change nothing: that of PostgreSQL, where the store is no database."`
}

// Run makes the tables of a store that keeps locks in tables, or brings them to the version of this
// program.
func (c *migrateCommand) Run(ctx context.Context, t terminal, common *commonFlags) error {
	storeURL, warning, err := common.url()
	if err != nil {
		return err
	}
	if warning != "" {
		t.warn(warning)
	}
	if storeURL, _, err = driver.CutFenceBase(storeURL); err != nil { // which stands in no table
		return usage("%v", err)
	}
	scheme, _, _ := strings.Cut(storeURL, ":")
	maker, ok := tables.Of(strings.ToLower(scheme))
	if !ok && c.Print { // what is printed asks no server
		storeURL = "postgres://"
		maker, ok = tables.Of("postgres")
	}
	if !ok {
		return usage("only a database has tables: want --store postgres://USER@HOST/DATABASE or mysql://USER@HOST/DATABASE")
	}
	if c.Print {
		text, err := maker.Schema(storeURL)
		if err != nil {
			return storeError(err)
		}
		_, err = fmt.Fprint(t.out, text)
		return err
	}
	where, err := maker.Migrate(ctx, storeURL)
	if err != nil {
		return storeError(err)
	}
	t.print("%s has all that keeps locks", where)
	return nil
}
