package pglock

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// schemaOf is [Schema] for the store of a URL, as one transaction.
func schemaOf(o *Options) (string, error) {
	text, err := Schema(o)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("begin;\n\n%s\ncommit;\n", text), nil
}

// migrateStore is [Migrate] for the store of a URL.
func migrateStore(ctx context.Context, config *pgxpool.Config, o *Options) (where string, err error) {
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return "", fmt.Errorf("pglock: %w", err)
	}
	defer pool.Close()
	return "schema " + cmp.Or(o.Schema, "interlock"), Migrate(ctx, pool, o)
}
