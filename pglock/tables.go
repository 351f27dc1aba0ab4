package pglock

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/interlock-go/interlock/driver"
)

// schemaOf is [Schema] for the store of a URL, as one transaction.
func schemaOf(rawURL string) (string, error) {
	_, o, err := ParseURL(rawURL)
	if err != nil {
		return "", &driver.URLError{Err: err}
	}
	text, err := Schema(o)
	if err != nil {
		return "", &driver.URLError{Err: err}
	}
	return fmt.Sprintf("begin;\n\n%s\ncommit;\n", text), nil
}

// migrateURL is [Migrate] for the store of a URL.
func migrateURL(ctx context.Context, rawURL string) (where string, err error) {
	config, o, err := ParseURL(rawURL)
	if err != nil {
		return "", &driver.URLError{Err: err}
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return "", fmt.Errorf("pglock: %w", err)
	}
	defer pool.Close()
	return "schema " + cmp.Or(o.Schema, "interlock"), Migrate(ctx, pool, o)
}
