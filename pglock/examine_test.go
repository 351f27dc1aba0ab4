package pglock_test

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/examine/examinetest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/pglock"
)

// sound are the arguments of a server that is well, other than those of tests usually are.
var sound = []string{"-c", "fsync=on", "-c", "autovacuum=on"}

// finds has the doctor look by a client that sees the settings as they are now.
func finds(t *testing.T, what, url string, want examinetest.Levels, o ...interlock.DoctorOption) *interlock.Report {
	t.Helper()
	c, err := interlock.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer c.Close()
	return examinetest.Finds(t, what, c, with(url, want), o...)
}

// with adds what cannot be looked at by a technique whatever the server is.
func with(url string, want examinetest.Levels) examinetest.Levels {
	all := examinetest.Levels{}
	maps.Copy(all, want)
	if strings.Contains(url, "technique=session") || strings.Contains(url, "technique=rowlock") {
		all["names"] = examinetest.Skip
	}
	if strings.Contains(url, "technique=rowlock") {
		all["latency"] = examinetest.Skip
	}
	return all
}

// reload has the server read its settings, and returns when new connections have them.
func reload(t *testing.T, s *servertest.Server) {
	t.Helper()
	before := ask[time.Time](t, s, "select pg_conf_load_time()")
	execute(t, s, "select pg_reload_conf()")
	until(t, "the settings are read", func() bool { return ask[time.Time](t, s, "select pg_conf_load_time()").After(before) })
}

// Each setting that hurts has its own finding, and no other; without them the same server is well.
func TestDoctor_Settings(t *testing.T) {
	t.Parallel()
	for _, technique := range leases {
		t.Run(technique, func(t *testing.T) {
			t.Parallel()
			settings(t, technique)
		})
	}
}

func settings(t *testing.T, technique string) {
	t.Helper()
	s := migrated(t, append(slices.Clone(sound), servertest.Replicated...)...)
	url := by(s.URL(), technique) + "&timeout=2m" // so that a statement has one of half of it on any machine
	finds(t, "a server that is well", url, nil)
	system := func(set string) (string, string) {
		name, _, _ := strings.Cut(set, " ")
		return "alter system set " + set, "alter system reset " + name
	}
	role := func(set string) (string, string) {
		name, _, _ := strings.Cut(set, " ")
		return "alter role postgres set " + set, "set transaction read write; alter role postgres reset " + name
	}
	as := func(do, undo string) func(string) (string, string) {
		return func(string) (string, string) { return do, undo }
	}
	for _, k := range []struct {
		by    func(string) (string, string)
		what  string
		rows  examinetest.Levels
		other examinetest.Levels // of session and rowlock
	}{
		{system, "full_page_writes = off", examinetest.Levels{"flushing": examinetest.Warn}, examinetest.Levels{"flushing": examinetest.Warn}},
		{role, "synchronous_commit = off", nil, nil},
		{role, "default_transaction_isolation = 'serializable'", nil, nil},
		{role, "idle_session_timeout = '5s'", examinetest.Levels{"idle connections": examinetest.Warn}, nil},
		{role, "idle_session_timeout = '5min'", nil, nil},
		{role, "idle_in_transaction_session_timeout = '1s'", nil, nil},
		{role, "statement_timeout = '1min'", examinetest.Levels{"statement time": examinetest.Warn}, nil},
		{role, "statement_timeout = '5min'", nil, nil},
		{
			// A NOTIFY that only a statement without a limit gets through.
			as("create schema slow; create function slow.pg_notify(text, text) returns void language plpgsql as $$ begin if current_setting('statement_timeout') <> '0' then raise query_canceled; end if; "+
				"perform pg_catalog.pg_notify($1, $2); end $$; alter role postgres set search_path = slow, pg_catalog; alter role postgres set statement_timeout = '1min'",
				"drop schema slow cascade; alter role postgres reset search_path; alter role postgres reset statement_timeout"),
			"a statement_timeout that ends each NOTIFY",
			examinetest.Levels{"statement time": examinetest.Warn},
			nil,
		},
		{system, "track_counts = off", examinetest.Levels{"vacuum": examinetest.Warn}, examinetest.Levels{"vacuum": examinetest.Warn}},
		{as("create rule other as on update to interlock.lock do also nothing", "drop rule if exists other on interlock.lock"), "a rule", examinetest.Levels{"rules": examinetest.Bad}, nil},
		{
			as("alter table interlock.lock drop constraint if exists lock_pkey", "alter table interlock.lock add primary key (name)"),
			"no primary key",
			examinetest.Levels{"keys": examinetest.Bad},
			nil,
		},
		{role, "lock_timeout = '1ms'", nil, nil},
		{role, "default_transaction_read_only = on", examinetest.Levels{"role": examinetest.Bad}, nil},
		{as("alter table interlock.session set unlogged", "alter table interlock.session set logged"), "an unlogged table", examinetest.Levels{"logged tables": examinetest.Warn}, nil},
		{as("alter function interlock.break rename to broken", "alter function interlock.broken rename to break"), "no function break", examinetest.Levels{"tables": examinetest.Bad}, nil},
		{
			as("create function audit() returns trigger language plpgsql as 'begin return new; end'; create trigger audit before update on interlock.lock for each row execute function audit()", "drop function audit cascade"),
			"a trigger",
			examinetest.Levels{"triggers": examinetest.Warn},
			nil,
		},
		{
			as("create table audit (name bytea references interlock.lock)", "drop table audit"),
			"a foreign key",
			examinetest.Levels{"triggers": examinetest.Warn},
			nil,
		},
	} {
		do, undo := k.by(k.what)
		execute(t, s, do)
		if strings.Contains(do, "system") {
			reload(t, s)
		}
		want := k.other
		if technique == "rows" {
			want = k.rows
		}
		for _, f := range finds(t, k.what, url, want).Findings {
			if typed := strings.TrimPrefix(f.Mend, "BEGIN READ WRITE; "); strings.HasPrefix(typed, "ALTER ROLE") || strings.HasPrefix(typed, "ALTER TABLE") || strings.HasPrefix(typed, "DROP RULE") {
				execute(t, s, f.Mend)
				finds(t, k.what+", and "+f.Mend, url, nil)
				if who, set, _ := strings.Cut(typed, " SET "); strings.HasPrefix(typed, "ALTER ROLE") {
					name, _, _ := strings.Cut(set, " ")
					execute(t, s, "begin read write; "+who+" reset "+name+"; commit")
				} else {
					execute(t, s, do)
				}
			}
		}
		execute(t, s, undo)
		if strings.Contains(do, "system") {
			reload(t, s)
		}
	}
	finds(t, "all is undone", url, nil)
}

// What servers of tests go without, for speed, is told of.
func TestDoctor_OfATest(t *testing.T) {
	t.Parallel()
	for title, args := range map[string][]string{"flushing": {"-c", "autovacuum=on"}, "vacuum": {"-c", "fsync=on"}} { // that of tests has both off, by its arguments
		finds(t, title+" is off", migrated(t, args...).URL(), examinetest.Levels{title: examinetest.Warn})
	}
}

// Who would take the primary's place is told from whom commits wait for, and a server that waits
// for nobody who is there from both.
func TestDoctor_Failover(t *testing.T) {
	t.Parallel()
	s := migrated(t, append(sound, servertest.Replicated...)...)
	standby := servertest.Standby(t, s)
	execute(t, s, "create role app login; grant pg_monitor to app; grant all on schema interlock to app; grant all on all tables in schema interlock to app; grant all on all sequences in schema interlock to app")
	finds(t, "an asynchronous standby", s.URL(), examinetest.Levels{"failover": examinetest.Warn})
	finds(t, "session, and an asynchronous standby", by(s.URL(), "session"), nil)
	app := strings.Replace(s.URL(), "postgres@", "app@", 1)
	finds(t, "a role that may see it", app, examinetest.Levels{"failover": examinetest.Warn})
	execute(t, s, "revoke pg_monitor from app")
	other := connect(t, s)
	defer other.Close(context.Background())
	finds(t, "a role that may not see it", app, examinetest.Levels{"failover": examinetest.Skip, "long transactions": examinetest.Skip})
	execute(t, s, "alter system set synchronous_standby_names = 'ANY 1 (*)'")
	reload(t, s)
	until(t, "the standby is waited for", func() bool {
		return ask[int](t, s, "select count(*) from pg_stat_replication where sync_state = 'quorum'") == 1
	})
	finds(t, "a standby that is waited for", s.URL(), nil)

	both := strings.Replace(s.URL(), s.Addr(), s.Addr()+","+standby.Addr(), 1)
	c, err := interlock.Open(t.Context(), both, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	execute(t, s, "alter system set synchronous_standby_names = 'nobody'")
	reload(t, s)
	for _, technique := range leases {
		finds(t, technique+" waits for nobody who is there", by(s.URL(), technique), examinetest.Levels{"failover": examinetest.Bad})
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	examinetest.Finds(t, "the standby alone is left", c, examinetest.Levels{"role": examinetest.Bad})
}

// What a role lacks is named, whatever it is.
func TestDoctor_Rights(t *testing.T) {
	t.Parallel()
	for _, technique := range leases {
		t.Run(technique, func(t *testing.T) {
			t.Parallel()
			rights(t, technique)
		})
	}
}

func rights(t *testing.T, technique string) {
	t.Helper()
	s := migrated(t, sound...)
	const needs = "grant usage on schema interlock to app; grant select on interlock.version to app; grant select, insert, update on interlock.lock, interlock.held to app; " +
		"grant select, insert, update, delete on interlock.session to app; grant select, usage, update on interlock.token to app"
	execute(t, s, "create role app login; grant pg_monitor to app; "+needs)
	app := strings.Replace(s.URL(), "postgres@", "app@", 1)
	finds(t, "all rights", by(app, technique), nil, interlock.Writing())
	for right, techniques := range map[string]string{
		"insert on interlock.lock from app":                        "rows",
		"delete on interlock.session from app":                     "rows",
		"update on interlock.held from app":                        "rowlock",
		"update on interlock.token from app":                       "session rowlock",
		"execute on function interlock.settle from public":         "rows",
		"execute on function pg_notify(text, text) from public":    "rows",
		"execute on function interlock.hold from public":           "",
		"execute on function interlock.advance() from public, app": "session rowlock",
	} {
		execute(t, s, "revoke "+right)
		want := examinetest.Levels{}
		if strings.Contains(techniques, technique) {
			want["rights"] = examinetest.Bad
		}
		if technique == "rows" && strings.Contains(right, "pg_notify") {
			want["listening"] = examinetest.Skip
		}
		for _, f := range finds(t, "without "+right, by(app, technique), want).Of(examinetest.Bad) {
			execute(t, s, f.Mend)
			finds(t, "with "+f.Mend, by(app, technique), nil)
			execute(t, s, strings.Replace(strings.Replace(f.Mend, "GRANT", "REVOKE", 1), " TO ", " FROM ", 1))
		}
		restore, _, _ := strings.Cut(strings.Replace("grant "+right, " from ", " to ", 1), ", app")
		execute(t, s, restore)
	}
}

// What a role may not see of others is said to be skipped, and what policies keep from it is told.
func TestDoctor_Unseen(t *testing.T) {
	t.Parallel()
	s := migrated(t, sound...)
	execute(t, s, "create role app login; grant all on schema interlock to app; grant all on all tables in schema interlock to app; grant all on all sequences in schema interlock to app")
	app := strings.Replace(s.URL(), "postgres@", "app@", 1)
	other := connect(t, s)
	defer other.Close(context.Background())
	finds(t, "somebody else is there", app, examinetest.Levels{"long transactions": examinetest.Skip})
	execute(t, s, "alter table interlock.lock enable row level security; grant pg_monitor to app")
	finds(t, "policies", app, examinetest.Levels{"row security": examinetest.Bad})
	finds(t, "policies that do not bind", s.URL(), nil)
}

// Connections that are nearly used up are told of the role, the database and the server.
func TestDoctor_Connections(t *testing.T) {
	t.Parallel()
	s := migrated(t, append(sound, "-c", "max_connections=20")...)
	execute(t, s, "create role app login; grant pg_monitor to app; grant all on schema interlock to app; grant all on all tables in schema interlock to app; grant all on all sequences in schema interlock to app")
	app := strings.Replace(s.URL(), "postgres@", "app@", 1)
	nearly := examinetest.Levels{"connections": examinetest.Warn}
	finds(t, "room", app, nil)
	for set, reset := range map[string]string{
		"alter role app connection limit 3":          "alter role app connection limit -1",
		"alter database postgres connection limit 3": "alter database postgres connection limit -1",
	} {
		execute(t, s, set)
		for _, f := range finds(t, set, app, nearly).Of(driver.LevelWarn) {
			typed, _, _ := strings.Cut(f.Mend, "; or ")
			execute(t, s, typed)
			finds(t, typed, app, nil)
		}
		execute(t, s, reset)
	}
	execute(t, s, "alter role app connection limit 1")
	finds(t, "none is left", app, examinetest.Levels{"connections": examinetest.Warn, "listening": examinetest.Skip})
	execute(t, s, "alter role app connection limit -1")
	until(t, "the connections are ended", func() bool { return backends(t, s, "") == 0 })
	for range 14 {
		other := connect(t, s)
		defer other.Close(context.Background())
	}
	finds(t, "a server that is nearly full", app, nearly)
}

// Through a pooler that shares connections rows are told that nobody tells them, and a lock that
// lives with a connection that it would be shared.
func TestDoctor_Poolers(t *testing.T) {
	t.Parallel()
	s := migrated(t, sound...)
	p := servertest.PgBouncer(t, s)
	deaf := finds(t, "a pooler", p.URL(), examinetest.Levels{"listening": examinetest.Warn})
	if f := deaf.Of(driver.LevelWarn); len(f) != 1 || !strings.Contains(f[0].Seen, "pooler") {
		t.Errorf("%+v, want that a pooler is between", f)
	}
	u := func(more string) string { return p.URL() + "&technique=rows&listen=" + more }
	finds(t, "a pooler, and the server itself", u("postgres%3A%2F%2Fpostgres%40"+s.Addr()+"%2Fpostgres%3Fsslmode%3Ddisable"), nil)
	keeps := servertest.PgBouncer(t, s, "pool_mode = session", "admin_users = postgres")
	c, err := interlock.Open(t.Context(), by(keeps.URL(), "session"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	examinetest.Finds(t, "a pooler that gives each its own", c, with("technique=session", nil))
	db, err := sql.Open("pgx", strings.Replace(keeps.URL(), "/postgres?", "/pgbouncer?", 1)+"&default_query_exec_mode=simple_protocol")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "set pool_mode = transaction"); err != nil {
		t.Fatal(err)
	}
	examinetest.Finds(t, "it has begun to share", c, with("technique=session", examinetest.Levels{"pooler": examinetest.Bad}))
}

// A clock that is wrong is noticed, and a transaction that has been open for hours.
func TestDoctor_Clock(t *testing.T) {
	t.Parallel()
	s, err := servertest.StartPostgres(t.Context(), servertest.Options{Clock: true, Args: sound})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := pglock.Migrate(t.Context(), pool(t, s.URL()), nil); err != nil {
		t.Fatal(err)
	}
	step := func(by time.Duration) {
		t.Helper()
		if err := s.Step(by); err != nil {
			t.Fatal(err)
		}
	}
	step(-2 * time.Hour)
	finds(t, "a clock that is behind", s.URL(), examinetest.Levels{"clock": examinetest.Warn})
	long := connect(t, s)
	defer long.Close(context.Background())
	if _, err := long.Exec(t.Context(), "begin isolation level repeatable read; select 1"); err != nil {
		t.Fatal(err)
	}
	step(2 * time.Hour)
	finds(t, "a transaction of two hours", s.URL(), examinetest.Levels{"long transactions": examinetest.Warn})
	if _, err := long.Exec(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}
	finds(t, "it has ended", s.URL(), nil)
}

// A server whose memory for locks is nearly full is told of to those who lock there.
func TestDoctor_LockTable(t *testing.T) {
	t.Parallel()
	s := migrated(t, append(sound, "-c", "max_locks_per_transaction=10", "-c", "max_connections=50")...)
	other := connect(t, s)
	defer other.Close(context.Background())
	if _, err := other.Exec(t.Context(), "select count(pg_advisory_lock(i)) from generate_series(1, 450) i"); err != nil {
		t.Fatal(err)
	}
	finds(t, "450 locks", by(s.URL(), "session"), examinetest.Levels{"lock table": examinetest.Warn})
	finds(t, "450 locks, and rows", s.URL(), nil)
}

// Transaction numbers that vacuum does not catch up with are told of long before the server stops
// for them.
func TestDoctor_Vacuum(t *testing.T) {
	t.Parallel()
	s := migrated(t, "-c", "fsync=on", "-c", "autovacuum=on", "-c", "autovacuum_freeze_max_age=100000", "-c", "synchronous_commit=off")
	finds(t, "few transactions", s.URL(), nil)
	old := connect(t, s)
	defer old.Close(context.Background())
	if _, err := old.Exec(t.Context(), "begin isolation level repeatable read; select txid_current()"); err != nil {
		t.Fatal(err)
	}
	execute(t, s, "do $$ begin for i in 1..210000 loop perform txid_current(); commit; end loop; end $$")
	finds(t, "200,000 transactions behind one that stays", s.URL(), examinetest.Levels{"vacuum": examinetest.Warn})
}

// A transaction that was prepared and forgotten holds a name for good.
func TestDoctor_PreparedTransactions(t *testing.T) {
	t.Parallel()
	s := migrated(t, append(slices.Clone(sound), "-c", "max_prepared_transactions=5")...)
	for technique, statement := range map[string]string{
		"rows":    "insert into interlock.lock values ('a', 0, '{}')",
		"rowlock": "insert into interlock.held values ('a', 0)",
		"session": "select pg_advisory_xact_lock(4711)",
	} {
		execute(t, s, "begin; "+statement+"; prepare transaction 'forgotten'")
		for _, other := range leases {
			want := examinetest.Levels{}
			if other == technique {
				want = examinetest.Levels{"prepared transactions": examinetest.Bad}
			}
			for _, f := range finds(t, other+", and "+statement, by(s.URL(), other), want).Of(driver.LevelBad) {
				if typed, _, _ := strings.Cut(f.Mend, "; or "); typed != "ROLLBACK PREPARED 'forgotten'" {
					t.Errorf("%+v, want how to end it", f)
				}
			}
		}
		execute(t, s, "rollback prepared 'forgotten'")
		finds(t, "it has ended", by(s.URL(), technique), nil)
	}
}
