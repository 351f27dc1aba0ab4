package pglock

import (
	"context"
	_ "embed" // the schema
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/lazyregexp"
)

// schema001 makes everything in an empty database. A schema002 would bring what it made to the next
// version.
//
//go:embed schema001.sql
var schema001 string

// version is the schema that this package needs. It works with the next one, too, so that the
// schema is migrated first and programs are replaced one by one.
const version = 1

// knows refuses a version of the schema that this package does not work with.
func (o *Options) knows(v int64) error {
	switch {
	case v == 0:
		return o.notOurs()
	case v < version:
		return fmt.Errorf("%w: %s has version %d, and this program needs %d: run interlock migrate --store URL", driver.ErrRefused, o.where(), v, version)
	case v > version+1:
		return fmt.Errorf("%w: %s has version %d, and this program knows %d and the next: run a newer one", driver.ErrRefused, o.where(), v, version)
	}
	return nil
}

func (o *Options) notOurs() error {
	return fmt.Errorf("%w: %w: table version in %s is empty or not ours: name another schema or a prefix, or drop what is left of this one", driver.ErrRefused, driver.ErrBadData, o.where())
}

// Schema returns the SQL that makes the tables and functions in an empty database, to be applied by
// hand in one transaction.
func Schema(o *Options) (string, error) {
	options, err := o.withDefaults()
	if err != nil {
		return "", err
	}
	return steps(&options), nil
}

// steps returns what is to be applied to an empty database.
func steps(o *Options) string {
	// IF NOT EXISTS asks for the right to make a schema also where it is there.
	return fmt.Sprintf("do $$ begin\n  if to_regnamespace('%q') is null then\n    create schema %[1]q;\n  end if;\nend $$;\n\n", o.Schema) +
		strings.ReplaceAll(schema001, "interlock.", o.in())
}

// Migrate makes the tables and functions, or brings them to this package's version. Several
// processes may call it at once; one that has nothing to do changes nothing. It needs the right to
// create what is missing.
func Migrate(ctx context.Context, pool *pgxpool.Pool, o *Options) error {
	options, err := o.withDefaults()
	if err != nil {
		return err
	}
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
		return migrate(ctx, tx.Conn(), &options)
	})
	switch c := code(err); {
	case c == "42501":
		err = fmt.Errorf("%w: the role needs CREATE on schema %s, or where there is no such schema on the database: %w", driver.ErrRefused, options.Schema, err)
	case c == "42P07" || c == "42710" || c == "42723":
		err = fmt.Errorf("%w: %w: something of that name is in %s, and is not ours: name another schema or a prefix: %w", driver.ErrRefused, driver.ErrBadData, options.where(), err)
	case err != nil:
		err = classify(err, &options)
	}
	if err != nil {
		return fmt.Errorf("pglock: migrate: %w", err)
	}
	return nil
}

// migrate looks and applies what is missing, alone. It never sends what it asks more than once, and
// works through a pooler: simple queries prepare nothing.
func migrate(ctx context.Context, conn *pgx.Conn, o *Options) error {
	ask := func(sql string) (string, error) {
		results, err := conn.PgConn().Exec(ctx, sql).ReadAll()
		if err != nil || len(results) == 0 || len(results[0].Rows) == 0 {
			return "", err
		}
		return string(results[0].Rows[0][0]), nil
	}
	// The schemas of one database wait for each other, whatever they are called: IF NOT EXISTS is
	// not atomic by itself.
	if _, err := ask("select pg_advisory_xact_lock(7310868735408894828)"); err != nil {
		return err
	}
	table, err := ask("select coalesce(to_regclass('" + o.in() + "version')::text, '')")
	if err != nil {
		return err
	}
	if table != "" {
		return whole(o, ask)
	}
	_, err = ask(steps(o))
	return err
}

// made is what the schema's file makes.
var made = lazyregexp.New(`(?m)^create (?:table|sequence|type|function) interlock\.(\w+)`)

// whole looks at what is there already.
func whole(o *Options, ask func(sql string) (string, error)) error {
	v, err := ask("select min(version)::text from " + o.in() + "version")
	if err != nil {
		return err
	}
	there, err := strconv.Atoi(v)
	switch {
	case err != nil:
		return o.notOurs()
	case there != version:
		return fmt.Errorf("%s has version %d, and this program knows %d: run a newer one: %w", o.where(), there, version, driver.ErrRefused)
	}
	var names []string
	for _, m := range made.FindAllStringSubmatch(schema001, -1) {
		names = append(names, m[1])
	}
	lacks, err := ask(o.missing(names))
	if err == nil && lacks != "" {
		err = fmt.Errorf("%s lacks %s: restore what was dropped, or drop the rest, too, and migrate again: %w", o.where(), lacks, driver.ErrRefused)
	}
	return err
}

// missing asks which of the names of tables, types and functions are not there, as a list with
// commas.
func (o *Options) missing(names []string) string {
	return fmt.Sprintf("select coalesce(string_agg(n, ', '), '') from unnest(array['%s']) n where to_regclass('%s' || n) is null and to_regtype('%[2]s' || n) is null "+
		"and not exists (select from pg_proc p join pg_namespace s on s.oid = p.pronamespace where s.nspname = '%[3]s' and p.proname = '%[4]s' || n)",
		strings.Join(names, "', '"), o.in(), o.Schema, o.Prefix)
}
