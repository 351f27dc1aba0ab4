package pglock

import (
	"context"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// tables checks whether the tables and functions of the schema are there, as they were made.
func (x *examination) tables(ctx context.Context) error {
	o := &x.d.options
	f := driver.Finding{Title: "tables", Seen: "all that this technique uses is in " + o.where()}
	if x.made == nil {
		f.Seen = "there is no sequence, so locks have no tokens: interlock migrate makes it"
		x.add(f)
		return nil
	}
	lacks, err := x.texts(ctx, o.missing(x.made))
	switch {
	case code(err) == "42501": // without the schema's USAGE, which rights reports
		f.Level, f.Seen = driver.LevelSkip, "this role may not look into "+o.where()
		x.add(f)
		return nil
	case err != nil:
		return err
	case lacks[0][0] != "":
		f.Level, f.Seen = driver.LevelBad, o.where()+" lacks "+lacks[0][0]
		f.Why = "what needs it fails: locks cannot be had, renewed or given back"
		f.Mend = "restore what was dropped; or drop the rest, too, and interlock migrate --store URL"
	}
	x.add(f)
	return x.altered(ctx)
}

// altered checks for changes that others have made to the tables. Row security shows only where it
// binds this role.
func (x *examination) altered(ctx context.Context) error {
	rows, err := x.texts(ctx, fmt.Sprintf("select c.relname, c.relpersistence, row_security_active(c.oid), "+
		"exists (select from pg_trigger t where t.tgrelid = c.oid and not t.tgisinternal and t.tgenabled <> 'D'), "+
		"exists (select from pg_constraint f where f.contype = 'f' and c.oid in (f.conrelid, f.confrelid)), "+
		"(select string_agg(format('DROP RULE %%I ON %%s', r.rulename, c.oid::regclass), '; ') from pg_rewrite r where r.ev_class = c.oid and r.ev_enabled <> 'D'), "+
		"c.relkind <> 'r' or exists (select from pg_index i join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0] "+
		"where i.indrelid = c.oid and i.indisunique and i.indisvalid and i.indimmediate and i.indnkeyatts = 1 and i.indpred is null and a.attname in ('name', 'id')) "+
		"from pg_class c join pg_namespace s on s.oid = c.relnamespace where s.nspname = '%s' and c.relname in ('%s') order by 1",
		x.d.options.Schema, x.d.options.Prefix+strings.Join(x.made, "', '"+x.d.options.Prefix)))
	if err != nil {
		return err
	}
	var unlogged, filtered, slowed, ruled, rules, twice, keys []string
	for _, f := range rows {
		if f[1] != "p" {
			unlogged = append(unlogged, f[0])
		}
		if f[2] == "t" {
			filtered = append(filtered, f[0])
		}
		if f[3] == "t" || f[4] == "t" {
			slowed = append(slowed, f[0])
		}
		if f[5] != "" {
			ruled, rules = append(ruled, f[0]), append(rules, f[5])
		}
		if f[6] == "f" && f[0] != x.d.options.Prefix+"version" {
			column := "name"
			if f[0] == x.d.options.Prefix+"session" {
				column = "id"
			}
			twice, keys = append(twice, f[0]), append(keys, x.alter([]string{f[0]}, "ADD PRIMARY KEY ("+column+")"))
		}
	}
	f := driver.Finding{Code: "S17", Title: "logged tables", Seen: "a crash leaves what is in the tables"}
	if unlogged != nil {
		f.Level, f.Seen = driver.LevelWarn, strings.Join(unlogged, ", ")+": UNLOGGED"
		f.Why = "a server that crashes empties it, and a standby never has it: who holds is forgotten, others get in, and tokens may repeat"
		f.Mend = x.alter(unlogged, "SET LOGGED")
	}
	x.add(f)
	f = driver.Finding{Title: "row security", Seen: "this role sees all rows"}
	if filtered != nil {
		f.Level, f.Seen = driver.LevelBad, "policies choose what this role sees of "+strings.Join(filtered, ", ")
		f.Why = "who does not see that a name is held takes it for free, or cannot lock it"
		f.Mend = x.alter(filtered, "DISABLE ROW LEVEL SECURITY")
	}
	x.add(f)
	f = driver.Finding{Title: "triggers", Seen: "there are none, and no foreign keys"}
	if slowed != nil {
		f.Level, f.Seen = driver.LevelWarn, "somebody has put triggers or foreign keys on "+strings.Join(slowed, ", ")
		f.Why = "each step of a lock runs them: where they are slow, wait or fail, renewals do, and holders lose their locks"
		f.Mend = "DROP TRIGGER, or ALTER TABLE with DROP CONSTRAINT, of those that psql shows by \\d " + x.d.options.Schema + "." + slowed[0] + ": read the rows elsewhere"
	}
	x.add(f)
	f = driver.Finding{Title: "rules", Seen: "there are none"}
	if ruled != nil {
		f.Level, f.Seen = driver.LevelBad, "somebody has put rules on "+strings.Join(ruled, ", ")
		f.Why = "what a step writes is something else then, or is refused: locks cannot be had, or two hold"
		f.Mend = strings.Join(rules, "; ")
	}
	x.add(f)
	f = driver.Finding{Title: "keys", Seen: "each name has one row"}
	if twice != nil {
		f.Level, f.Seen = driver.LevelBad, "there is no primary key, or it is not valid, of "+strings.Join(twice, ", ")
		f.Why = "no step can be made without it; where it was away for a while a name may have two rows, and two hold"
		f.Mend = strings.Join(keys, "; ")
	}
	x.add(f)
	return x.prepared(ctx)
}

// prepared checks for transactions of others that were prepared and not ended: they hold their
// locks, over restarts too.
func (x *examination) prepared(ctx context.Context) error {
	rows, err := x.texts(ctx, fmt.Sprintf("select quote_literal(p.gid), quote_ident(p.owner), ceil(extract(epoch from clock_timestamp() - p.prepared))::bigint, coalesce(min(c.relname), 'a name') "+
		"from pg_prepared_xacts p join pg_locks x on x.pid is null and x.transactionid = p.transaction "+
		"join pg_locks l on l.pid is null and l.virtualtransaction = x.virtualtransaction left join pg_class c on c.oid = l.relation "+
		"left join pg_namespace s on s.oid = c.relnamespace where p.database = current_database() and (l.locktype = 'advisory' and '%s' = 'session' "+
		"or l.locktype = 'relation' and l.mode <> 'AccessShareLock' and s.nspname = '%s' and c.relname in ('%s')) group by 1, 2, 3 order by 3 desc",
		x.d.options.Technique, x.d.options.Schema, x.d.options.Prefix+strings.Join(x.made, "', '"+x.d.options.Prefix)))
	if err != nil {
		return err
	}
	f := driver.Finding{Title: "prepared transactions", Seen: "none holds what locks are made of"}
	if len(rows) > 0 {
		f.Level, f.Seen = driver.LevelBad, fmt.Sprintf("%s of %s, prepared %s s ago, has locked %s", rows[0][0], rows[0][1], rows[0][2], rows[0][3])
		if more := len(rows) - 1; more > 0 {
			f.Seen += fmt.Sprintf(", and so have %d more", more)
		}
		f.Why = "until it is ended, over restarts too, its names cannot be locked, renewed or given back"
		f.Mend = "ROLLBACK PREPARED " + rows[0][0] + "; or COMMIT PREPARED, where that is what its transaction manager has decided"
	}
	x.add(f)
	return nil
}

// alter is what alters tables of the schema.
func (x *examination) alter(tables []string, how string) string {
	var all []string
	for _, table := range tables {
		all = append(all, fmt.Sprintf("ALTER TABLE %s.%s %s", x.d.options.Schema, table, how))
	}
	return strings.Join(all, "; ")
}
