package database

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// postgres asks for what is looked at. What others do is hidden from a role without pg_read_all_stats, and then is null; so is a setting that
// the version does not have.
const postgres = `select name, value from (values
	('recovery', pg_is_in_recovery()::text),
	('role', quote_ident(session_user)),
	('database', quote_ident(current_database())),
	('read only', current_setting('default_transaction_read_only')),
	('isolation', current_setting('default_transaction_isolation')),
	('fsync', current_setting('fsync')),
	('pages', current_setting('full_page_writes')),
	('commit', current_setting('synchronous_commit')),
	('names', current_setting('synchronous_standby_names')),
	('standbys', (select count(*)::text from pg_stat_replication where state is distinct from 'backup')),
	('hidden', (select count(*)::text from pg_stat_replication where state is null)),
	('sync', (select count(*)::text from pg_stat_replication where sync_state in ('sync', 'quorum'))),
	('idle', (select setting from pg_settings where name = 'idle_session_timeout')),
	('statement ms', (select setting from pg_settings where name = 'statement_timeout')),
	('super', current_setting('is_superuser')),
	('max', current_setting('max_connections')),
	('reserved', (select sum(setting::int)::text from pg_settings where name in ('superuser_reserved_connections', 'reserved_connections'))),
	('used', (select sum(numbackends)::text from pg_stat_database)),
	('max of role', (select rolconnlimit::text from pg_roles where rolname = session_user)),
	('used by role', (select count(*)::text from pg_stat_activity where usename = session_user)),
	('max of database', (select datconnlimit::text from pg_database where datname = current_database())),
	('used in database', (select numbackends::text from pg_stat_database where datname = current_database())),
	('version', current_setting('server_version')),
	('number', current_setting('server_version_num')),
	('age', (select max(age(datfrozenxid))::text from pg_database)),
	('vacuumed at', current_setting('autovacuum_freeze_max_age')),
	('autovacuum', current_setting('autovacuum')),
	('counts', (select reset_val from pg_settings where name = 'track_counts')),
	('others', (select count(*)::text from pg_stat_activity where query = '<insufficient privilege>' and datname = current_database())),
	('oldest', (select extract(epoch from max(clock_timestamp() - xact_start))::bigint::text from pg_stat_activity
		where backend_xmin is not null and datname = current_database()))
	) facts (name, value)`

// Standby is the finding about a PostgreSQL that follows another one.
func Standby() driver.Finding {
	return driver.Finding{
		Code: "S18", Title: "role", Level: driver.LevelBad, Seen: "the server is a standby (pg_is_in_recovery())",
		Why:  "it takes no writes: no lock can be had, renewed or given back",
		Mend: "name the primary, or all servers and target_session_attrs=read-write; SELECT pg_promote() where this is to be it",
	}
}

// Postgres makes the checks of a PostgreSQL. Of a standby it says only that it is one.
func Postgres(ctx context.Context, s Store) ([]driver.Finding, error) {
	x := &examination{Store: s, facts: map[string]string{}}
	if err := x.gather(ctx, postgres); err != nil {
		return nil, err
	}
	role := driver.Finding{Code: "S18", Title: "role", Seen: "it is a primary"}
	switch {
	case x.is("recovery", "true"):
		return []driver.Finding{Standby()}, nil
	case x.is("read only", "on") && !s.Own:
		role.Level, role.Seen = driver.LevelBad, "default_transaction_read_only is on"
		role.Why = "transactions of this role or database write nothing: no lock can be had, renewed or given back"
		role.Mend = "BEGIN READ WRITE; " + x.setting("default_transaction_read_only = off") + "; COMMIT"
	}
	x.add(role)
	x.pgVersion()
	x.pgFlushing()
	x.pgFailover()
	x.isolation(x.facts["isolation"])
	x.answers("statement_timeout", x.ms("statement ms"), x.setting("statement_timeout = 0"))
	x.idle("idle_session_timeout", x.ms("idle"), x.setting("idle_session_timeout = 0"))
	system := func(most int64) string {
		return fmt.Sprintf("ALTER SYSTEM SET max_connections = %d, and a restart", more(most))
	}
	limits := []limit{{"max_connections, less what is reserved,", x.number("max") - x.number("reserved"), x.number("used"), system(x.number("max"))}}
	if x.is("super", "on") {
		limits[0] = limit{"max_connections", x.number("max"), x.number("used"), system(x.number("max"))}
	} else {
		role, base := x.number("max of role"), x.number("max of database")
		limits = append(limits,
			limit{"the role's CONNECTION LIMIT", role, x.number("used by role"), fmt.Sprintf("ALTER ROLE %s CONNECTION LIMIT %d", x.facts["role"], more(role))},
			limit{"the database's CONNECTION LIMIT", base, x.number("used in database"), fmt.Sprintf("ALTER DATABASE %s CONNECTION LIMIT %d", x.facts["database"], more(base))})
	}
	x.connections("smaller pools (pool_max_conns)", limits...)
	x.pgVacuum()
	return x.found, x.clock(ctx, "select (extract(epoch from clock_timestamp()) * 1000000)::bigint")
}

// setting is the statement that sets something for this role in this database, which is before what is set for either, or for the server.
func (x *examination) setting(set string) string {
	return fmt.Sprintf("ALTER ROLE %s IN DATABASE %s SET %s", x.facts["role"], x.facts["database"], set)
}

// ms is a fact in milliseconds.
func (x *examination) ms(name string) time.Duration {
	return time.Duration(x.number(name)) * time.Millisecond
}

// pgVersion knows the versions whose faults break what locks rely on.
func (x *examination) pgVersion() {
	f := driver.Finding{Title: "version", Seen: "PostgreSQL " + x.facts["version"]}
	if why := faulty(x.number("number")); why != "" {
		f.Level, f.Why, f.Mend = driver.LevelWarn, why, "the newest minor release of the same version, and then REINDEX"
	}
	x.add(f)
}

// faulty says what is wrong with a version.
func faulty(number int64) string {
	if number >= 140000 && number < 140004 {
		return "CREATE INDEX CONCURRENTLY and REINDEX CONCURRENTLY can leave an index without rows that are there, before 14.4: a name then gets a second row, and two hold"
	}
	return ""
}

// pgFlushing looks at what a crash loses.
func (x *examination) pgFlushing() {
	f := driver.Finding{Code: "S17", Title: "flushing", Seen: "what is committed is on the disk"}
	commit := x.facts["commit"]
	switch {
	case !x.is("fsync", "on"):
		f.Level, f.Seen, f.Mend = driver.LevelWarn, "fsync is off", "ALTER SYSTEM SET fsync = on, and SELECT pg_reload_conf()"
		f.Why = "a machine that crashes can lose locks, tokens, or the database"
	case !x.is("pages", "on"):
		f.Level, f.Seen, f.Mend = driver.LevelWarn, "full_page_writes is off", "ALTER SYSTEM SET full_page_writes = on, and SELECT pg_reload_conf()"
		f.Why = "a machine that crashes can leave a torn page, and lose locks, tokens, or the database"
	case commit == "off" && !x.Flushes:
		f.Level, f.Seen = driver.LevelWarn, "synchronous_commit is off"
		f.Why = "a server that crashes forgets the locks of its last moments, and lets others in"
		f.Mend = x.setting("synchronous_commit = on")
	case commit == "off":
		f.Seen = "synchronous_commit is off, and each change of a lock sets it on for itself"
	}
	x.add(f)
}

// pgFailover looks at who would take the server's place, and whom commits wait for.
func (x *examination) pgFailover() {
	f := driver.Finding{Code: "S18", Title: "failover", Seen: "no standby is seen; what a service does below the server is not"}
	names, standbys, sync := x.facts["names"], x.number("standbys"), x.number("sync")
	commit := x.facts["commit"]
	waits := x.Flushes || commit != "off" && commit != "local"
	const mend = "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)', and SELECT pg_reload_conf(), with two standbys or more: with one, nobody can lock while it is away"
	switch {
	case x.number("hidden") > 0:
		f.Level = driver.LevelSkip
		f.Seen = fmt.Sprintf("there are %d standbys, and this role may not see whether commits wait for them: GRANT pg_monitor TO %s", standbys, x.facts["role"])
	case names != "" && sync == 0 && waits:
		f.Level, f.Seen = driver.LevelBad, fmt.Sprintf("synchronous_standby_names is %q, and none of these is there", names)
		f.Why = "commits wait for one: no lock can be had, renewed or given back"
		f.Mend = "bring the standbys back, or ALTER SYSTEM RESET synchronous_standby_names, and SELECT pg_reload_conf()"
	case standbys > 0 && sync > 0 && waits:
		f.Seen = fmt.Sprintf("commits wait for %d of %d standbys", sync, standbys)
	case standbys > 0 && !x.Leads:
		f.Seen = fmt.Sprintf("%d standbys, none of which commits wait for; a failover ends all locks, and that is told", standbys)
	case standbys > 0:
		f.Level, f.Seen = driver.LevelWarn, fmt.Sprintf("%d standbys, none of which commits wait for", standbys)
		if sync > 0 {
			f.Seen = fmt.Sprintf("%d standbys, and synchronous_commit is %s", standbys, commit)
		}
		f.Why = "a failover can lose locks that were just taken, and let others in"
		f.Mend = mend
	}
	x.add(f)
}

// How near the end of its transaction numbers a server is, and how long a transaction keeps old rows, when that is told.
const (
	tooOld  = 1_500_000_000 // of 2³¹, or twice as old as vacuum is to let it be
	tooLong = time.Hour
)

// pgVacuum looks at what keeps the server from cleaning up.
func (x *examination) pgVacuum() {
	f := driver.Finding{Code: "O7", Title: "vacuum", Seen: fmt.Sprintf("the oldest transaction number is %d back, and vacuum's own limit %d (autovacuum_freeze_max_age)", x.number("age"), x.number("vacuumed at"))}
	switch {
	case x.number("age") > min(2*x.number("vacuumed at"), tooOld):
		f.Level = driver.LevelWarn
		f.Why = "at some 2,144 million the server takes no writes, until it is vacuumed: no lock can be had, renewed or given back"
		f.Mend = "end what keeps old transactions (pg_stat_activity, pg_prepared_xacts, pg_replication_slots), and VACUUM (FREEZE) the database that is the oldest by age(datfrozenxid)"
	case !x.is("autovacuum", "on"), !x.is("counts", "on"):
		off := "autovacuum"
		if x.is("autovacuum", "on") { // which goes by what is counted
			off = "track_counts"
		}
		f.Level, f.Seen = driver.LevelWarn, off+" is off"
		f.Why = "the tables of locks, which are written all the time, grow, and each step gets slower, until it is slower than a grace"
		f.Mend = "ALTER SYSTEM SET " + off + " = on, and SELECT pg_reload_conf(); or VACUUM the tables often"
	}
	x.add(f)
	oldest := time.Duration(x.number("oldest")) * time.Second
	f = driver.Finding{Title: "long transactions", Seen: fmt.Sprintf("the longest that reads has taken %v", oldest)}
	switch {
	case oldest > tooLong:
		f.Level = driver.LevelWarn
		f.Why = "vacuum cleans up nothing behind it: the tables of locks grow, and each step gets slower, until it is slower than a grace"
		f.Mend = "end it (pg_stat_activity.xact_start, pg_terminate_backend), and SET idle_in_transaction_session_timeout for whoever leaves them"
	case x.number("others") > 0:
		f.Level, f.Seen = driver.LevelSkip, "this role may not see those of others: GRANT pg_monitor TO "+x.facts["role"]
	}
	x.add(f)
}
