package mysqllock

import (
	"context"
	"database/sql"
	_ "embed" // the schema
	"fmt"
	"strings"

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
		return fmt.Errorf("%w: %w: table %sversion is empty: run interlock migrate --store URL once more, or name another prefix where it is not ours", driver.ErrRefused, driver.ErrBadData, o.Prefix)
	case v < version:
		return fmt.Errorf("%w: the tables have version %d, and this program needs %d: run interlock migrate --store URL", driver.ErrRefused, v, version)
	case v > version+1:
		return fmt.Errorf("%w: the tables have version %d, and this program knows %d and the next: run a newer one", driver.ErrRefused, v, version)
	}
	return nil
}

// Schema returns the SQL that makes the tables and procedures in an empty database, to be applied
// by hand with the server's own client.
func Schema(o *Options) (string, error) {
	options, err := o.withDefaults()
	if err != nil {
		return "", err
	}
	return "set sql_mode = 'STRICT_ALL_TABLES';\n" + strings.ReplaceAll(schema001, "interlock_", options.Prefix) + "delimiter ;\n", nil
}

// procedure finds what a statement makes, creates what all of them do.
var (
	procedure = lazyregexp.New(`(?m)^create procedure (\w+)`)
	creates   = lazyregexp.New(`(?m)^create (?:table|procedure|/\*M! sequence) (?:if not exists )?interlock_(\w+)`)
)

// statements returns what makes the tables and procedures, one statement each, or what is missing
// of them. No server takes back what has been created when the next statement fails, so each may be
// repeated, and the last one writes the version. A procedure is carried out in the sql_mode that it
// was made in, so that is set before; the connection is of no more use to others.
func statements(prefix string) []string {
	all := []string{"set sql_mode = 'STRICT_ALL_TABLES'"}
	_, text, _ := strings.Cut(schema001, "delimiter //\n")
	for _, s := range strings.Split(strings.TrimSuffix(strings.ReplaceAll(text, "interlock_", prefix), "\n//\n"), "\n//\n") {
		if m := procedure.FindStringSubmatch(s); m != nil {
			all = append(all, "drop procedure if exists "+m[1])
		}
		all = append(all, strings.Replace(s, "create table "+prefix, "create table if not exists "+prefix, 1))
	}
	return all
}

// Migrate makes the tables and procedures, or brings them to this package's version. Several
// processes may call it at once; one that has nothing to do changes nothing. It needs the rights
// CREATE and CREATE ROUTINE, and ALTER ROUTINE where it goes on with what was broken off.
func Migrate(ctx context.Context, db *sql.DB, o *Options) error {
	options, err := o.withDefaults()
	if err != nil {
		return err
	}
	c, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("mysqllock: migrate: %w", classify(unconnected{err}, &options))
	}
	err = migrate(ctx, c, &options)
	discard(c) // which also gives back the lock
	_ = c.Close()
	if n := code(err); n == 1142 || n == 1370 || n == 1044 || n == 1227 {
		err = fmt.Errorf("%w: the user needs CREATE, CREATE ROUTINE and ALTER ROUTINE in the database, and the rights of a user of locks: %w", driver.ErrRefused, err)
	} else if n != 0 {
		err = classify(err, &options)
	}
	if err != nil {
		return fmt.Errorf("mysqllock: migrate: %w", err)
	}
	return nil
}

// migrate looks and applies what is missing, alone.
func migrate(ctx context.Context, c *sql.Conn, o *Options) error {
	got, err := results(ctx, c, "select get_lock('interlock migrate', 60)")
	if err != nil {
		return err
	}
	if string(got[0][0]) != "1" {
		return fmt.Errorf("%w: somebody else has been migrating for a minute: lock 'interlock migrate' is held", driver.ErrNotSent)
	}
	there, err := results(ctx, c, "select min(version) from "+o.Prefix+"version")
	switch {
	case code(err) == 1146, err == nil && integer(there[0][0]) == 0:
	case err != nil:
		return err
	default:
		return whole(ctx, c, o, integer(there[0][0]))
	}
	for _, s := range statements(o.Prefix) {
		if _, err := c.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// whole looks at what is there already.
func whole(ctx context.Context, c *sql.Conn, o *Options, v int64) error {
	if v != version {
		return fmt.Errorf("%w: the tables have version %d, and this program knows %d: run a newer one", driver.ErrRefused, v, version)
	}
	made, err := results(ctx, c, "select table_name from information_schema.tables where table_schema = database() union all "+
		"select routine_name from information_schema.routines where routine_schema = database()")
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, f := range made {
		names[string(f[0])] = true
	}
	for _, m := range creates.FindAllStringSubmatch(schema001, -1) {
		if !names[o.Prefix+m[1]] {
			return fmt.Errorf("%w: the database lacks %s%s: restore what was dropped, or drop the rest, too, and migrate again", driver.ErrRefused, o.Prefix, m[1])
		}
	}
	return nil
}
