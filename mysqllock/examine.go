package mysqllock

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/examine/database"
)

// Examine implements driver.Examiner.
func (d *Driver) Examine(ctx context.Context, e driver.Exam) ([]driver.Finding, error) {
	x := &examination{d: d, tries: [][2]string{
		{"version", "select 1 from %s limit 1"},
		{"lock", "explain insert into %s values ('', 0, '')"},
		{"lock", "explain update %s set fence = fence where name = ''"},
		{"session", "explain update %s set ttl = ttl where id = ''"},
		{"session", "explain delete from %s where id = ''"},
	}}
	for _, m := range creates.FindAllStringSubmatch(schema001, -1) {
		if !slices.Contains([]string{"held", "hold", "row", "get", "token", "draw", "advance"}, m[1]) {
			x.made = append(x.made, m[1])
		}
	}
	if err := x.all(ctx, e, false); err != nil {
		return x.found, err
	}
	return append(x.found, d.waiting(ctx)), nil
}

// Examine implements driver.Examiner.
func (d *connDriver) Examine(ctx context.Context, e driver.Exam) ([]driver.Finding, error) {
	x := &examination{d: d.Driver, made: []string{"version", "held", "token", "draw", "advance", "get"}, tries: [][2]string{
		{"version", "select 1 from %s limit 1"},
		{"token", "select 1 from %s limit 1"},
		{"held", "explain insert into %s values ('', 0)"},
		{"held", "explain update %s set turns = turns where name = ''"},
	}}
	if d.rows {
		x.made[5] = "row"
	}
	err := x.all(ctx, e, true)
	return x.found, err
}

// examination is one of a driver.
type examination struct {
	d     *Driver
	made  []string    // of the schema, what the technique uses
	tries [][2]string // tables, and statements that change nothing of them, and are refused to a user without the right
	found []driver.Finding
}

func (x *examination) add(f driver.Finding) { x.found = append(x.found, f) }

// texts makes a query.
func (x *examination) texts(ctx context.Context, query string) (all [][]string, err error) {
	ctx, cancel := context.WithTimeout(ctx, x.d.options.Timeout)
	defer cancel()
	a, err := x.d.send(ctx, query, "")
	for _, f := range a.rows {
		texts := make([]string, len(f))
		for i, b := range f {
			texts[i] = string(b)
		}
		all = append(all, texts)
	}
	return all, err
}

// all makes the checks of the server, and those of the tables.
func (x *examination) all(ctx context.Context, e driver.Exam, own bool) (err error) {
	x.found, err = database.MariaDB(ctx, database.Store{Exam: e, Ask: x.texts, Timeout: x.d.options.Timeout, Leads: !own, Own: own})
	if err == nil && x.found[0].Level < driver.LevelBad { // else nothing can be locked
		err = x.tables(ctx)
	}
	if err != nil {
		err = unchanged(err)
	}
	return err
}

// tables checks whether the tables and procedures of the schema are there, by an engine that has
// transactions, and what the user may do with it.
func (x *examination) tables(ctx context.Context) error {
	prefix := x.d.options.Prefix
	rows, err := x.texts(ctx, "select table_name, case when table_type = 'BASE TABLE' then ifnull(engine, 'none') else 'InnoDB' end from information_schema.tables where table_schema = database() union all "+
		"select routine_name, 'InnoDB' from information_schema.routines where routine_schema = database()")
	if err != nil {
		return err
	}
	who, err := x.texts(ctx, "select "+database.Account+", database()")
	if err != nil {
		return err
	}
	account, base := who[0][0], who[0][1]
	var lacks, crude, alters, refused, missing []string
	for _, name := range x.made {
		if !slices.ContainsFunc(rows, func(f []string) bool { return f[0] == prefix+name }) {
			lacks = append(lacks, prefix+name)
		}
	}
	for _, f := range rows {
		if name, ok := strings.CutPrefix(f[0], prefix); ok && slices.Contains(x.made, name) && f[1] != "InnoDB" {
			crude = append(crude, f[0]+" ("+f[1]+")")
			alters = append(alters, "ALTER TABLE "+f[0]+" ENGINE = InnoDB")
		}
	}
	f := driver.Finding{Title: "tables", Seen: "all that this technique uses is there"}
	if lacks != nil {
		f.Level, f.Seen = driver.LevelBad, "this user does not see "+strings.Join(lacks[:min(len(lacks), 5)], ", ")
		if more := len(lacks) - 5; more > 0 {
			f.Seen += fmt.Sprintf(", and %d more", more)
		}
		f.Why = "it is not there, or the user has no right to it: locks cannot be had, renewed or given back"
		f.Mend = strings.Join(grants(&x.d.options, base, account), "; ") + "; or restore what was dropped; or drop the rest, too, and interlock migrate --store URL"
	}
	x.add(f)
	f = driver.Finding{Title: "engine", Seen: "the tables are of InnoDB"}
	if crude != nil {
		f.Level, f.Seen = driver.LevelBad, "not of InnoDB: "+strings.Join(crude, ", ")
		f.Why = "such a table has no transactions and locks no rows: what a step writes of it stays when the rest is undone, and two may hold"
		f.Mend = strings.Join(alters, "; ")
	}
	x.add(f)
	if err := x.triggers(ctx); err != nil || lacks != nil {
		return err
	}
	for _, try := range x.tries {
		_, err := x.texts(ctx, fmt.Sprintf(try[1], prefix+try[0]))
		switch c := code(err); {
		case c == 1142, c == 1143:
			verb, _, _ := strings.Cut(strings.TrimPrefix(try[1], "explain "), " ")
			refused = append(refused, strings.ToUpper(verb)+" of "+prefix+try[0])
			missing = append(missing, grant(strings.ToUpper(verb), base, prefix+try[0], account))
		case err != nil:
			return err
		}
	}
	f = driver.Finding{Title: "rights", Seen: "this user has those that locks take"}
	if refused != nil {
		f.Level, f.Seen = driver.LevelBad, "this user lacks "+strings.Join(refused, ", ")
		f.Why = "what takes them is refused: locks cannot be had, renewed or given back"
		f.Mend = strings.Join(missing, "; ")
	}
	x.add(f)
	return nil
}

// triggers checks for triggers on the tables.
func (x *examination) triggers(ctx context.Context) error {
	const quoted = "concat('`', replace(%s, '`', '``'), '`')"
	name := func(column string) string { return fmt.Sprintf(quoted, column) }
	drop := "concat('ALTER TABLE ', " + name("table_schema") + ", '.', " + name("table_name") + ", ' DROP FOREIGN KEY ', " + name("constraint_name") + ") from information_schema.key_column_usage where "
	rows, err := x.texts(ctx, "select event_object_table, concat('DROP TRIGGER ', "+name("trigger_name")+") from information_schema.triggers where event_object_schema = database() "+
		"union select referenced_table_name, "+drop+"referenced_table_schema = database() "+
		"union select table_name, "+drop+"table_schema = database() and referenced_table_name is not null")
	if err != nil {
		return err
	}
	var slowed, drops []string
	for _, f := range rows {
		if name, ok := strings.CutPrefix(f[0], x.d.options.Prefix); ok && slices.Contains(x.made, name) {
			slowed, drops = append(slowed, f[0]), append(drops, f[1])
		}
	}
	f := driver.Finding{Title: "triggers", Seen: "there are none that this user may see, and no foreign keys"}
	if slowed != nil {
		f.Level, f.Seen = driver.LevelWarn, "somebody has put triggers or foreign keys on "+strings.Join(slowed, ", ")
		f.Why = "each step of a lock runs them: where they are slow, wait or fail, renewals do, and holders lose their locks"
		f.Mend = strings.Join(slices.Compact(drops), "; ") + ": read the rows elsewhere"
	}
	x.add(f)
	return nil
}

// waiting reports how claims wait.
func (d *Driver) waiting(ctx context.Context) driver.Finding {
	f := driver.Finding{Title: "waiting", Seen: "who waits behind a mutex or a write lock is told"}
	if !d.owned {
		f.Seen = "who waits looks every 25 ms, since the connections are the program's: NewConnector has him told"
		return f
	}
	ctx, cancel := context.WithTimeout(ctx, d.options.Timeout)
	defer cancel()
	if d.gates == nil {
		f.Level, f.Seen = driver.LevelWarn, "GET_LOCK could not be used when this client began"
	} else if err := d.gates.check(ctx); err != nil {
		f.Level, f.Seen = driver.LevelWarn, fmt.Sprintf("GET_LOCK cannot be used: %v", err)
	}
	if f.Level > driver.LevelOK {
		f.Why = "the first in each line asks 40 times a second instead of being told: many who wait load the server, and hand over late"
		f.Mend = "a server that has GET_LOCK, and a connection for it (max_user_connections)"
	}
	return f
}
