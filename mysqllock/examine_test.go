package mysqllock_test

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/examine/examinetest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/mysqllock"
)

// flushes is the argument of a server that is well, other than those of tests usually are.
const flushes = "--innodb-flush-method=fsync"

// opens is a client that sees the settings as they are now.
func opens(t *testing.T, what, url string) *interlock.Client {
	t.Helper()
	c, err := interlock.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// finds has the doctor look by such a client.
func finds(t *testing.T, what, url string, want examinetest.Levels, o ...interlock.DoctorOption) *interlock.Report {
	t.Helper()
	c := opens(t, what, url)
	defer c.Close()
	all := examinetest.Levels{} // and what cannot be looked at by a technique whatever the server is
	maps.Copy(all, want)
	if strings.Contains(url, "technique=session") || strings.Contains(url, "technique=rowlock") {
		all["names"] = examinetest.Skip
	}
	if strings.Contains(url, "technique=rowlock") {
		all["latency"] = examinetest.Skip
	}
	return examinetest.Finds(t, what, c, all, o...)
}

// Each setting that hurts has its own finding, and no other; without them the same server is well.
func TestDoctor_Settings(t *testing.T) {
	t.Parallel()
	s := migrated(t, flushes)
	for _, technique := range []string{"rows", "session", "rowlock"} {
		finds(t, technique+" on a server that is well", s.URL()+"?technique="+technique, nil, interlock.Writing())
	}
	both := func(title string, l driver.Level) [2]examinetest.Levels {
		return [2]examinetest.Levels{{title: l}, {title: l}}
	}
	for _, k := range []struct {
		do, undo string
		want     [2]examinetest.Levels // by rows, and by session
	}{
		{"set global innodb_flush_log_at_trx_commit = 0", "set global innodb_flush_log_at_trx_commit = 1", both("flushing", examinetest.Warn)},
		{"set global innodb_flush_log_at_trx_commit = 2", "set global innodb_flush_log_at_trx_commit = 1", both("flushing", examinetest.Warn)},
		{"set global max_statement_time = 0.5", "set global max_statement_time = 0", [2]examinetest.Levels{{"statement time": examinetest.Warn}}},
		{"set global max_statement_time = 60", "set global max_statement_time = 0", [2]examinetest.Levels{}},
		{"set global wait_timeout = 5", "set global wait_timeout = 28800", [2]examinetest.Levels{{"idle connections": examinetest.Warn}}},
		{"set global interactive_timeout = 5", "set global interactive_timeout = 28800", [2]examinetest.Levels{}},
		{"set global innodb_lock_wait_timeout = 1", "set global innodb_lock_wait_timeout = 50", [2]examinetest.Levels{}},
		{"set global tx_isolation = 'SERIALIZABLE'", "set global tx_isolation = 'REPEATABLE-READ'", [2]examinetest.Levels{}},
		{"set global tx_read_only = 1", "set global tx_read_only = 0", both("role", examinetest.Bad)},
		{"set global max_allowed_packet = 65536", "set global max_allowed_packet = 16777216", both("packet", examinetest.Warn)},
		{"create trigger audit before update on interlock_lock for each row set @audit = 1", "drop trigger audit", [2]examinetest.Levels{{"triggers": examinetest.Warn}}},
		{
			"create table audit (name varbinary(1024) primary key, foreign key (name) references interlock_lock (name)) engine = InnoDB", "drop table audit",
			[2]examinetest.Levels{{"triggers": examinetest.Warn}},
		},
		{"alter table interlock_session engine = Aria", "alter table interlock_session engine = InnoDB", [2]examinetest.Levels{{"engine": examinetest.Bad}}},
		{"alter table interlock_held engine = Aria", "alter table interlock_held engine = InnoDB", [2]examinetest.Levels{nil, {"engine": examinetest.Bad}}},
	} {
		execute(t, s, k.do)
		for _, f := range finds(t, k.do, s.URL(), k.want[0]).Findings {
			if f.Title == "triggers" && f.Level > driver.LevelOK { // what is to be typed helps
				typed, _, _ := strings.Cut(f.Mend, ": ")
				execute(t, s, typed)
				finds(t, k.do+", and "+typed, s.URL(), nil)
				execute(t, s, k.undo[:strings.LastIndex(k.undo, " ")]+" if exists "+k.undo[strings.LastIndex(k.undo, " ")+1:], k.do)
			}
		}
		finds(t, "session with "+k.do, bySession(s), k.want[1])
		execute(t, s, k.undo)
	}
	c := opens(t, "a server that is well", s.URL())
	execute(t, s, "set global read_only = 1")
	examinetest.Finds(t, "a server that has become read-only", c, examinetest.Levels{"role": examinetest.Bad})
	execute(t, s, "set global read_only = 0")
	examinetest.Finds(t, "all is undone", c, nil)
	execute(t, s, "drop procedure interlock_depart")
	examinetest.Finds(t, "no procedure depart", c, examinetest.Levels{"tables": examinetest.Bad})
	finds(t, "session, and no procedure depart", bySession(s), nil)
}

// What a server loses in a crash of the machine is told of its binary log and its pages, too, and a
// log that takes no locks.
func TestDoctor_Logs(t *testing.T) {
	t.Parallel()
	finds(t, "a server that flushes nothing", migrated(t).URL(), examinetest.Levels{"flushing": examinetest.Warn})
	s := migrated(t, flushes, "--log-bin=log", "--server-id=1", "--innodb-doublewrite=0", "--binlog-format=ROW")
	says := func(word string, want examinetest.Levels) {
		t.Helper()
		r := finds(t, word, s.URL(), want)
		for _, f := range r.Findings {
			if f.Title == "flushing" && !strings.Contains(f.Seen, word) {
				t.Errorf("%+v, want %s", f, word)
			}
		}
	}
	says("sync_binlog is 0", examinetest.Levels{"flushing": examinetest.Warn})
	execute(t, s, "set global sync_binlog = 1")
	says("innodb_doublewrite", examinetest.Levels{"flushing": examinetest.Warn})
	execute(t, s, "set global binlog_format = 'STATEMENT'")
	says("innodb_doublewrite", examinetest.Levels{"flushing": examinetest.Warn, "binary log": examinetest.Bad})
}

// Who would take the primary's place is told from whom commits wait for, and a replica that takes
// writes is told of.
func TestDoctor_Failover(t *testing.T) {
	t.Parallel()
	s := migrated(t, flushes, "--log-bin=log", "--server-id=1", "--binlog-format=ROW", "--sync-binlog=1", "--rpl-semi-sync-master-timeout=60000")
	replica := servertest.MariaDB(t, flushes, "--server-id=2")
	execute(t, replica, fmt.Sprintf("change master to master_host = '127.0.0.1', master_port = %d, master_user = 'root', master_use_gtid = slave_pos", s.Port()), "start slave")
	if n := ask[int](t, replica, fmt.Sprintf("select master_gtid_wait('%s', 30)", ask[string](t, s, "select @@gtid_binlog_pos"))); n != 0 {
		t.Fatal("the replica does not follow")
	}
	finds(t, "a replica", s.URL(), examinetest.Levels{"failover": examinetest.Warn})
	finds(t, "session, and a replica", bySession(s), nil)
	finds(t, "the replica, which takes writes", replica.URL(), examinetest.Levels{"role": examinetest.Warn})
	execute(t, s, "set global rpl_semi_sync_master_enabled = 1")
	execute(t, replica, "set global rpl_semi_sync_slave_enabled = 1", "stop slave io_thread", "start slave io_thread")
	until(t, "commits wait for the replica", func() bool {
		return ask[string](t, s, "select variable_value from information_schema.global_status where variable_name = 'rpl_semi_sync_master_clients'") == "1" &&
			ask[string](t, s, "select variable_value from information_schema.global_status where variable_name = 'rpl_semi_sync_master_status'") == "ON"
	})
	finds(t, "a replica that is waited for", s.URL(), nil)
}

// What a user lacks is named.
func TestDoctor_Rights(t *testing.T) {
	t.Parallel()
	s := migrated(t, flushes)
	execute(t, s, "create user app", "grant execute on test.* to app", "grant select on test.interlock_version to app", "grant select, insert, update on test.interlock_lock to app",
		"grant select, insert, update, delete on test.interlock_session to app", "grant select, insert, update on test.interlock_held to app", "grant select, insert, update, delete on test.interlock_token to app")
	app := strings.Replace(s.URL(), "root@", "app@", 1)
	for _, technique := range []string{"rows", "session", "rowlock"} {
		finds(t, technique+" with all rights", app+"?technique="+technique, nil)
	}
	for right, rows := range map[string]bool{"insert on test.interlock_lock": true, "update on test.interlock_lock": true, "delete on test.interlock_session": true, "update on test.interlock_held": false} {
		execute(t, s, "revoke "+right+" from app")
		want := [2]examinetest.Levels{{"rights": examinetest.Bad}, {}}
		if !rows {
			want[0], want[1] = want[1], want[0]
		}
		for technique, want := range map[string]examinetest.Levels{"rows": want[0], "session": want[1]} {
			url := app + "?technique=" + technique
			for _, f := range finds(t, technique+" without "+right, url, want).Of(driver.LevelBad) {
				execute(t, s, f.Mend)
				finds(t, technique+" with "+f.Mend, url, nil)
				execute(t, s, "revoke "+right+" from app")
			}
		}
		execute(t, s, "grant "+right+" to app")
	}
	execute(t, s, "revoke execute on test.* from app")
	r := finds(t, "no right to the procedures", app, examinetest.Levels{"latency": examinetest.Skip, "names": examinetest.Skip, "tables": examinetest.Bad})
	for _, f := range r.Of(driver.LevelBad) {
		typed, _, _ := strings.Cut(f.Mend, "; or ")
		execute(t, s, strings.Split(typed, "; ")...)
		finds(t, "with "+typed, app, nil)
	}
}

// Connections that are nearly used up are told of the user and of the server; and a wait that
// nobody tells of its end.
func TestDoctor_Connections(t *testing.T) {
	t.Parallel()
	s := migrated(t, flushes)
	execute(t, s, "create user app with max_user_connections 4", "grant all on test.* to app")
	nearly := examinetest.Levels{"connections": examinetest.Warn}
	for _, f := range finds(t, "a user who is nearly at his limit", strings.Replace(s.URL(), "root@", "app@", 1), nearly).Of(driver.LevelWarn) {
		typed, _, _ := strings.Cut(f.Mend, "; or ")
		execute(t, s, typed)
		finds(t, typed, strings.Replace(s.URL(), "root@", "app@", 1), nil)
	}
	finds(t, "another one", s.URL(), nil)
	db := pool(t, s.URL())
	var one *sql.Conn // for later: a full server lets nobody else in
	for range 8 {
		c, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		one = c
	}
	execute(t, s, "set global max_connections = 12")
	finds(t, "a server that is nearly full", s.URL(), nearly)
	if _, err := one.ExecContext(t.Context(), "set global max_connections = 400"); err != nil {
		t.Fatal(err)
	}

	d, err := driver.OpenURL(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	mysqllock.Ungated(d)
	c, err := interlock.New(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	examinetest.Finds(t, "a server without GET_LOCK", c, examinetest.Levels{"waiting": examinetest.Warn})
	over, err := mysqllock.New(context.Background(), pool(t, s.URL()), nil)
	if err != nil {
		t.Fatal(err)
	}
	polls, err := interlock.New(over, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = polls.Close() })
	examinetest.Finds(t, "a program's own pool", polls, nil)
}

// A clock that is wrong is noticed.
func TestDoctor_Clock(t *testing.T) {
	t.Parallel()
	s, err := servertest.StartMariaDB(t.Context(), servertest.Options{Clock: true, Args: []string{flushes}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := mysqllock.Migrate(t.Context(), pool(t, s.URL()), nil); err != nil {
		t.Fatal(err)
	}
	for _, by := range []time.Duration{time.Minute, -time.Hour} {
		if err := s.Step(by); err != nil {
			t.Fatal(err)
		}
		finds(t, fmt.Sprintf("a clock that was stepped by %v", by), s.URL(), examinetest.Levels{"clock": examinetest.Warn})
		if err := s.Step(-by); err != nil {
			t.Fatal(err)
		}
	}
	finds(t, "a clock that is right again", s.URL(), nil)
}
