package pglock

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/interlock-go/interlock/driver"
)

// answered is the error of an opening by a URL. Where the server has answered it has a finding, as
// the doctor has it; what it matches stays the same.
func answered(err error, to *pgx.ConnConfig, asked *Options) error {
	var says *pgconn.PgError
	if !errors.As(err, &says) || errors.As(err, new(*driver.FindingError)) || errors.As(err, new(*driver.URLError)) {
		return err
	}
	o, wrong := asked.withDefaults()
	if wrong != nil {
		return err
	}
	role, name := pgx.Identifier{to.User}.Sanitize(), pgx.Identifier{to.Database}.Sanitize()
	f := driver.Finding{
		Title: "opening", Level: driver.LevelBad, Seen: "the server answered: " + says.Message,
		Why: unusable, Mend: "as the server says; its log may say more",
	}
	switch c := says.Code; {
	case c == "28P01":
		f.Title, f.Seen = "login", "the server does not accept the password of the role "+role
		f.Mend = "the right one in the URL, postgres://ROLE:PASSWORD@HOST/DATABASE, in PGPASSWORD or in ~/.pgpass; ALTER ROLE " + role + " PASSWORD 'PASSWORD' gives the role another one"
	case strings.HasPrefix(c, "28"):
		f.Title = "login"
		f.Mend = fmt.Sprintf("a line of pg_hba.conf for this role, database and address, as host %s %s ADDRESS/32 scram-sha-256, and SELECT pg_reload_conf(); or, where there is no such role, CREATE ROLE %[2]s LOGIN PASSWORD 'PASSWORD'", name, role)
	case c == "3D000":
		f.Title, f.Seen, f.Mend = "database", "the server has no database "+name, "CREATE DATABASE "+name+" OWNER "+role+", and interlock migrate --store URL; or the name of one that there is in the URL"
	case c == "42P01" || c == "3F000" || c == "42883" || c == "42704":
		f = o.absent()
	case c == "42501":
		f.Title, f.Seen, f.Mend = "rights", "the role "+role+" lacks a right: "+says.Message, grants(role, o.Schema, o.allRights())
	case c == "53300":
		f.Code, f.Title, f.Mend = "S7", "connections", fmt.Sprintf("a higher limit (ALTER ROLE %s CONNECTION LIMIT, ALTER DATABASE %s CONNECTION LIMIT; or ALTER SYSTEM SET max_connections, and a restart), or smaller pools (pool_max_conns)", role, name)
	case c == "57P03":
		f.Title, f.Mend = "starting", "wait until it has: the server's log says what it does"
	}
	return &driver.FindingError{Finding: f, Err: err}
}

// allRights are those that a technique needs, in the words of rights.
func (o *Options) allRights() []string {
	needs := rightsOfRows
	switch o.Technique {
	case "session":
		needs = rightsOfTokens
	case "rowlock":
		needs = slices.Concat(rightsOfTokens, rightsOfHeld)
	}
	all := []string{"USAGE of schema " + o.Schema}
	for _, n := range needs {
		all = append(all, fmt.Sprintf("%s of %s.%s%s", n[0], o.Schema, o.Prefix, n[1]))
	}
	return all
}
