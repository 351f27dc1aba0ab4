package pglock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/examine/database"
)

// Examine implements driver.Examiner.
func (d *Driver) Examine(ctx context.Context, e driver.Exam) ([]driver.Finding, error) {
	x := &examination{d: d, needs: rightsOfRows}
	for _, m := range made.FindAllStringSubmatch(schema001, -1) {
		if !slices.Contains([]string{"held", "hold", "token", "advance"}, m[1]) {
			x.made = append(x.made, m[1])
		}
	}
	err := x.all(ctx, e, false, x.hearing)
	return x.found, err
}

// Examine implements driver.Examiner.
func (d *connDriver) Examine(ctx context.Context, e driver.Exam) ([]driver.Finding, error) {
	x := &examination{d: d.Driver}
	if d.fence {
		x.made, x.needs = []string{"version", "token", "advance"}, rightsOfTokens
	}
	last := []func(context.Context) error{func(ctx context.Context) error { return x.pooler(ctx, d) }}
	if d.rows {
		x.made, x.needs = append(x.made, "held"), slices.Concat(rightsOfTokens, rightsOfHeld)
	} else {
		last = append(last, x.lockTable)
	}
	err := x.all(ctx, e, true, last...)
	return x.found, err
}

// examination is one of a driver.
type examination struct {
	d     *Driver
	made  []string    // of the schema, what the technique uses
	needs [][2]string // rights, and on what
	found []driver.Finding
}

// What a role needs.
var (
	rightsOfRows = [][2]string{
		{"SELECT", "version"},
		{"SELECT", "lock"},
		{"INSERT", "lock"},
		{"UPDATE", "lock"},
		{"SELECT", "session"},
		{"INSERT", "session"},
		{"UPDATE", "session"},
		{"DELETE", "session"},
	}
	rightsOfTokens = [][2]string{{"SELECT", "version"}, {"SELECT", "token"}, {"USAGE", "token"}, {"UPDATE", "token"}}
	rightsOfHeld   = [][2]string{{"SELECT", "held"}, {"INSERT", "held"}, {"UPDATE", "held"}}
)

func (x *examination) add(f driver.Finding) { x.found = append(x.found, f) }

// texts makes a query.
func (x *examination) texts(ctx context.Context, query string) (all [][]string, err error) {
	rows, err := x.d.look(ctx, query)
	for _, f := range rows {
		texts := make([]string, len(f))
		for i, b := range f {
			texts[i] = string(b)
		}
		all = append(all, texts)
	}
	return all, err
}

// all makes the checks of the server, those of the tables, and the last ones.
func (x *examination) all(ctx context.Context, e driver.Exam, own bool, last ...func(context.Context) error) (err error) {
	x.found, err = database.Postgres(ctx, database.Store{Exam: e, Ask: x.texts, Timeout: x.d.options.Timeout, Flushes: true, Leads: !own, Own: own})
	if err != nil {
		return unchanged(err)
	}
	if x.found[0].Level == driver.LevelBad { // nothing can be locked
		return nil
	}
	for _, check := range append([]func(context.Context) error{x.tables, x.rights}, last...) {
		if err := check(ctx); err != nil {
			return unchanged(err)
		}
	}
	return nil
}

// grants are the statements that give a role what it lacks, in the words of rights.
func grants(role, schema string, lacks []string) string {
	var all []string
	for _, what := range lacks {
		right, of, _ := strings.Cut(what, " of ")
		switch {
		case right == "EXECUTE" && strings.HasPrefix(of, schema+"."):
			of = "ALL FUNCTIONS IN SCHEMA " + schema
		case right == "EXECUTE":
			of = "FUNCTION " + of
		case strings.HasPrefix(of, "schema "):
			of = "SCHEMA " + schema
		case right == "USAGE":
			of = "SEQUENCE " + of
		}
		if s := fmt.Sprintf("GRANT %s ON %s TO %s", right, of, role); !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return strings.Join(all, "; ")
}

// rights checks which rights the role lacks. For a table or function that is missing it does not
// ask.
func (x *examination) rights(ctx context.Context) error {
	o := &x.d.options
	asked := []string{fmt.Sprintf("('USAGE of schema %s', has_schema_privilege('%[1]s', 'usage'))", o.Schema)}
	for _, n := range x.needs {
		kind := "table"
		if n[1] == "token" {
			kind = "sequence"
		}
		asked = append(asked, fmt.Sprintf("('%s of %s.%s%s', has_%s_privilege(to_regclass('%s%[4]s'), '%[1]s'))", n[0], o.Schema, o.Prefix, n[1], kind, o.in()))
	}
	if x.made == nil {
		asked = []string{"('', true)"}
	}
	functions := fmt.Sprintf("select 'EXECUTE of ' || p.oid::regprocedure, has_function_privilege(p.oid, 'execute') from pg_proc p join pg_namespace s on s.oid = p.pronamespace "+
		"where s.nspname = '%s' and p.proname in ('%s') or p.oid = 'pg_catalog.pg_notify(text, text)'::regprocedure and 'turn' in ('%s')",
		o.Schema, o.Prefix+strings.Join(x.made, "', '"+o.Prefix), strings.Join(x.made, "', '"))
	rows, err := x.texts(ctx, "select what from (select * from (values "+strings.Join(asked, ", ")+") asked (what, has) union all "+functions+") rights (what, has) where not has")
	var lacks []string
	for _, f := range rows {
		lacks = append(lacks, f[0])
	}
	f := driver.Finding{Title: "rights", Seen: "this role has those that locks take"}
	switch {
	case code(err) == "42501":
		lacks = []string{"USAGE of schema " + o.Schema}
	case err != nil:
		return err
	}
	if lacks != nil {
		f.Level, f.Seen = driver.LevelBad, "this role lacks "+strings.Join(lacks[:min(len(lacks), 5)], ", ")
		if more := len(lacks) - 5; more > 0 {
			f.Seen += fmt.Sprintf(", and %d more", more)
		}
		f.Why = "what takes them is refused: locks cannot be had, renewed or given back"
		role, err := x.texts(ctx, "select quote_ident(current_user)")
		if err != nil {
			return err
		}
		f.Mend = grants(role[0][0], o.Schema, lacks)
	}
	x.add(f)
	return nil
}

// hearing checks whether notifications arrive, by sending one.
func (x *examination) hearing(ctx context.Context) error {
	f := driver.Finding{Code: "S1", Title: "listening", Seen: "a NOTIFY is heard: who waits is told"}
	var conn *pgx.Conn
	var err error
	if x.d.sessions.Notifier == nil {
		err = x.d.notifier.prove(ctx)
	} else if conn, err = x.d.notifier.dial(); err == nil {
		_ = conn.Close(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case code(err) == "53300":
		f.Level, f.Seen = driver.LevelSkip, "no connection is left to try it over"
	case code(err) == "42501":
		f.Level, f.Seen = driver.LevelSkip, "this role may not NOTIFY: see its rights"
	case err == nil && x.d.sessions.Notifier != nil:
	default:
		f.Level, f.Seen = driver.LevelWarn, "a NOTIFY was not heard when this client began"
		if err != nil {
			f.Seen = fmt.Sprintf("no NOTIFY is heard: %v", err)
		}
		f.Why = "the first in each line asks 40 times a second instead of being told: many who wait load the server, and hand over late"
		f.Mend = "name the server itself by listen= (Options.Listen), with a pooler for all else"
	}
	x.add(f)
	return nil
}

// pooler checks whether connections of our own keep their backends, now.
func (x *examination) pooler(ctx context.Context, d *connDriver) error {
	f := driver.Finding{Code: "S1", Title: "pooler", Seen: "a connection keeps its backend"}
	pc, _, err := d.dial(ctx, ping)
	if err == nil {
		err = d.keeps(ctx, pc)
		_ = pc.Close(ctx)
	}
	switch {
	case code(err) == "53300":
		f.Level, f.Seen = driver.LevelSkip, "no connection is left to try it over"
	case errors.Is(err, errPooler):
		f.Level, f.Seen = driver.LevelBad, "a pooler shares the server's connections between its clients"
		f.Why = "a lock belongs to a connection, and then to whoever is given that next: two hold"
		f.Mend = "name the server itself by listen= (Options.Listen), or use technique rows"
	case err != nil:
		return err
	}
	x.add(f)
	return nil
}

// lockTable checks the memory that the server has for locks.
func (x *examination) lockTable(ctx context.Context) error {
	rows, err := x.texts(ctx, "select count(*), current_setting('max_locks_per_transaction')::bigint * (current_setting('max_connections')::bigint + current_setting('max_prepared_transactions')::bigint) from pg_locks where not fastpath")
	if err != nil {
		return err
	}
	used, room := number(rows[0][0]), number(rows[0][1])
	f := driver.Finding{Title: "lock table", Seen: fmt.Sprintf("the server has room for some %d locks, and %d are there", room, used)}
	if used > room/10*8 {
		f.Level = driver.LevelWarn
		f.Why = "when it is full the server gives no more locks (out of shared memory), to anybody"
		f.Mend = "max_locks_per_transaction, twice as large, and a restart; or fewer names at once"
	}
	x.add(f)
	return nil
}
