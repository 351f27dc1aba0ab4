package pglock

import (
	"context"
	_ "embed" // the schema
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/interlock-go/interlock/driver"
)

// schema001 makes everything in an empty database. A schema002 would bring what it made to the next version.
//
//go:embed schema001.sql
var schema001 string

// version is the schema that this package needs. It works with the next one, too, so that the schema is migrated first
// and programs are replaced one by one.
const version = 1

// knows refuses a version of the schema that this package does not work with.
func (o *Options) knows(v int64) error {
	switch {
	case v < version:
		return fmt.Errorf("%w: schema %s has version %d, and this program needs %d: run interlock migrate --store URL", driver.ErrRefused, o.Schema, v, version)
	case v > version+1:
		return fmt.Errorf("%w: schema %s has version %d, and this program knows %d and the next: run a newer one", driver.ErrRefused, o.Schema, v, version)
	}
	return nil
}

// Schema returns the SQL that makes the tables and functions in an empty database, to be applied by hand in one transaction.
func Schema(o *Options) (string, error) {
	options, err := o.withDefaults()
	if err != nil {
		return "", err
	}
	return steps(&options), nil
}

// steps returns what is to be applied to an empty database.
func steps(o *Options) string {
	return fmt.Sprintf("create schema if not exists %q;\n\n", o.Schema) + strings.ReplaceAll(schema001, "interlock.", o.in())
}

// Migrate makes the tables and functions, or brings them to this package's version. Several processes may call it at
// once; one that has nothing to do changes nothing. It needs the right to create what is missing.
func Migrate(ctx context.Context, pool *pgxpool.Pool, o *Options) error {
	options, err := o.withDefaults()
	if err != nil {
		return err
	}
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
		return migrate(ctx, tx.Conn(), &options)
	})
	if err != nil {
		return fmt.Errorf("pglock: migrate: %w", classify(err, &options))
	}
	return nil
}

// migrate looks and applies what is missing, alone. It never sends what it asks more than once, and works through a pooler: simple
// queries prepare nothing.
func migrate(ctx context.Context, conn *pgx.Conn, o *Options) error {
	ask := func(sql string) (string, error) {
		results, err := conn.PgConn().Exec(ctx, sql).ReadAll()
		if err != nil || len(results) == 0 || len(results[0].Rows) == 0 {
			return "", err
		}
		return string(results[0].Rows[0][0]), nil
	}
	// The schemas of one database wait for each other, whatever they are called: IF NOT EXISTS is not atomic by itself.
	if _, err := ask("select pg_advisory_xact_lock(7310868735408894828)"); err != nil {
		return err
	}
	there := 0
	table, err := ask("select coalesce(to_regclass('" + o.in() + "version')::text, '')")
	if err == nil && table != "" {
		var v string
		if v, err = ask("select version from " + o.in() + "version"); err == nil {
			_, err = fmt.Sscan(v, &there)
		}
	}
	if err != nil || there == version {
		return err
	}
	if there != 0 {
		return fmt.Errorf("schema %s has version %d, and this program knows %d: run a newer one: %w", o.Schema, there, version, driver.ErrRefused)
	}
	_, err = ask(steps(o))
	return err
}
