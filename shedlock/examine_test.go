package shedlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/examine/examinetest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// sound are the arguments of a server that is well, other than those of tests usually are.
func sound(t *testing.T) []string {
	t.Helper()
	return map[bool][]string{true: {"-c", "autovacuum=on"}, false: {"--innodb-flush-method=fsync"}}[strings.HasSuffix(t.Name(), "postgres")]
}

// as is a client of a user's, that sees the settings as they are now.
func as(t *testing.T, s *database, user string) *interlock.Client {
	t.Helper()
	c, err := interlock.Open(t.Context(), strings.NewReplacer("postgres@", user+"@", "root@", user+"@").Replace(s.url(s.Addr())), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// owner is the user who may do everything.
func owner(s *database) string { return map[bool]string{true: "postgres", false: "root"}[s.postgres] }

// Each setting that hurts has its own finding, and no other; without them the same server is well.
func TestDoctor(t *testing.T) {
	both(t, func(t *testing.T, on opening) {
		s := on(t, sound(t)...)
		finds := func(what, title string, l driver.Level) {
			t.Helper()
			want := examinetest.Levels{}
			if title != "" {
				want[title] = l
			}
			c := as(t, s, owner(s))
			defer c.Close()
			examinetest.Finds(t, what, c, want)
		}
		finds("a server that is well", "", 0)
		settings := [][4]string{ // how, how it is undone, and what is found
			{"alter role postgres set synchronous_commit = off", "alter role postgres reset synchronous_commit", "flushing", "warn"},
			{"alter role postgres set statement_timeout = '900ms'", "alter role postgres reset statement_timeout", "statement time", "warn"},
			{"alter role postgres set idle_session_timeout = '5s'", "alter role postgres reset idle_session_timeout", "idle connections", "warn"},
			{"alter role postgres set default_transaction_read_only = on", "set transaction read write; alter role postgres reset default_transaction_read_only", "role", "bad"},
			{"alter role postgres set default_transaction_isolation = 'serializable'", "alter role postgres reset default_transaction_isolation", "", ""},
		}
		if !s.postgres {
			settings = [][4]string{
				{"set global innodb_flush_log_at_trx_commit = 2", "set global innodb_flush_log_at_trx_commit = 1", "flushing", "warn"},
				{"set global max_statement_time = 0.5", "set global max_statement_time = 0", "statement time", "warn"},
				{"set global wait_timeout = 5", "set global wait_timeout = 28800", "idle connections", "warn"},
				{"set global max_allowed_packet = 65536", "set global max_allowed_packet = 16777216", "packet", "warn"},
				{"set global tx_isolation = 'SERIALIZABLE'", "set global tx_isolation = 'REPEATABLE-READ'", "", ""},
			}
		}
		for _, k := range settings {
			s.must(t, k[0])
			finds(k[0], k[2], map[string]driver.Level{"warn": examinetest.Warn, "bad": examinetest.Bad}[k[3]])
			s.must(t, k[1])
		}
	})
}

// A server that takes no writes, a user who lacks a right, and a table that a crash empties are told of.
func TestDoctor_NoLocks(t *testing.T) {
	both(t, func(t *testing.T, on opening) {
		s := on(t, sound(t)...)
		c := as(t, s, owner(s))
		if !s.postgres {
			s.must(t, "set global read_only = 1")
			examinetest.Finds(t, "a server that has become read-only", c, examinetest.Levels{"role": examinetest.Bad})
			s.must(t, "set global read_only = 0")
		}
		s.must(t, map[bool]string{true: "create role app login", false: "create user app"}[s.postgres])
		s.must(t, "grant select, insert on shedlock to app")
		examinetest.Finds(t, "a user who may not UPDATE", as(t, s, "app"), map[bool]examinetest.Levels{
			true: {"rights": examinetest.Bad, "long transactions": examinetest.Skip}, false: {"rights": examinetest.Bad},
		}[s.postgres])
		s.must(t, map[bool]string{true: "alter table shedlock set unlogged", false: "alter table shedlock engine = Aria"}[s.postgres])
		examinetest.Finds(t, "a table that a crash empties", c, examinetest.Levels{"table": examinetest.Bad})
	})
}

// A clock that is wrong is noticed.
func TestDoctor_Clock(t *testing.T) {
	t.Parallel()
	server, err := servertest.StartPostgres(t.Context(), servertest.Options{Clock: true, Args: append([]string{"-c", "fsync=on", "-c", "autovacuum=on"}, servertest.Replicated...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	s := overPostgres(t, server)
	c, err := interlock.Open(t.Context(), s.url(s.Addr()), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := s.Step(time.Hour); err != nil {
		t.Fatal(err)
	}
	examinetest.Finds(t, "a clock that is ahead", c, examinetest.Levels{"clock": examinetest.Warn})
}

// A primary whose standby nobody waits for is told of.
func TestDoctor_Standby(t *testing.T) {
	t.Parallel()
	s := overPostgres(t, servertest.Postgres(t, append([]string{"-c", "fsync=on", "-c", "autovacuum=on"}, servertest.Replicated...)...))
	c, err := interlock.Open(t.Context(), s.url(s.Addr()), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	servertest.Standby(t, s.Server)
	examinetest.Finds(t, "a standby", c, examinetest.Levels{"failover": examinetest.Warn})
}
