package servertest_test

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
)

// database is a kind of server that keeps tables, and its words.
type database struct {
	start func(context.Context, servertest.Options) (*servertest.Server, error)
	ask   func(t *testing.T, s *servertest.Server, query string) (string, error)

	sleep, sleepers, now string
	options              servertest.Options
	settings, set        string
	url                  string // around the address
}

var databases = map[string]database{
	"PostgreSQL": {
		start:    servertest.StartPostgres,
		ask:      func(_ *testing.T, s *servertest.Server, query string) (string, error) { return sql(s, query) },
		sleep:    "select pg_sleep(60)",
		sleepers: "select count(*) from pg_stat_activity where query = 'select pg_sleep(60)'",
		now:      "select extract(epoch from clock_timestamp())",
		options:  servertest.Options{Args: []string{"-c", "max_connections=7", "-c", "fsync=on"}, Env: []string{"TZ=Europe/Berlin"}},
		settings: "select concat_ws(' ', current_setting('max_connections'), current_setting('fsync'), current_setting('listen_addresses'))",
		set:      "7 on 127.0.0.1",
		url:      "postgres://postgres@%/postgres?sslmode=disable",
	},
	"MariaDB": {
		start: servertest.StartMariaDB, ask: askMaria,
		sleep:    "do sleep(60)",
		sleepers: "select count(*) from information_schema.processlist where info = 'do sleep(60)'",
		now:      "select unix_timestamp(sysdate(6))",
		options:  servertest.Options{Args: []string{"--max-connections=17", "--sql-mode=ANSI_QUOTES"}, Env: []string{"TZ=Europe/Berlin"}},
		settings: "select concat_ws(' ', @@max_connections, @@sql_mode, @@bind_address, from_unixtime(1700000000), current_user())",
		set:      "17 ANSI_QUOTES 127.0.0.1 2023-11-14 23:13:20 root@127.0.0.1",
		url:      "mysql://root@%/test",
	},
}

// eachDatabase starts one of each kind.
func eachDatabase(t *testing.T, options func(database) servertest.Options, try func(t *testing.T, d database, s *servertest.Server, must func(query string) string)) {
	t.Helper()
	t.Parallel()
	for name, d := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := d.start(t.Context(), options(d))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			try(t, d, s, func(query string) string {
				t.Helper()
				got, err := d.ask(t, s, query)
				if err != nil {
					t.Fatalf("%s: %v", query, err)
				}
				return got
			})
		})
	}
}

func usual(database) servertest.Options { return servertest.Options{} }

func TestDatabaseKeepsItsDataOverStopAndKill(t *testing.T) {
	eachDatabase(t, usual, func(t *testing.T, d database, s *servertest.Server, must func(string) string) {
		must("create table kept (n int)")
		for i, end := range []func() error{s.Stop, s.Kill} {
			must("insert into kept values (1)")
			if err := end(); err != nil {
				t.Fatal(err)
			}
			if got, err := d.ask(t, s, "select 1"); err == nil {
				t.Errorf("a server that was ended answers %q", got)
			}
			if err := s.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, want := must("select count(*) from kept"), strconv.Itoa(i+1); got != want {
				t.Errorf("after end %d the table has %s rows, want %s", i+1, got, want)
			}
		}
	})
}

func TestDatabaseStopsWithClients(t *testing.T) {
	eachDatabase(t, usual, func(t *testing.T, d database, s *servertest.Server, must func(string) string) {
		ended := make(chan error, 1)
		go func() {
			_, err := d.ask(t, s, d.sleep)
			ended <- err
		}()
		for end := time.Now().Add(30 * time.Second); must(d.sleepers) != "1"; {
			if time.Now().After(end) {
				t.Fatal("the sleeper does not come")
			}
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err == nil {
			t.Error("a client slept on while its server was stopped")
		}
	})
}

func TestDatabaseTakesArgumentsAndCleansUp(t *testing.T) {
	eachDatabase(t, func(d database) servertest.Options { return d.options }, func(t *testing.T, d database, s *servertest.Server, must func(string) string) {
		if got := must(d.settings); got != d.set {
			t.Errorf("settings %q, want %q", got, d.set)
		}
		if want := strings.Replace(d.url, "%", s.Addr(), 1); s.URL() != want {
			t.Errorf("URL %s, want %s", s.URL(), want)
		}
		shared := sharedMemory(t, s)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if all, err := os.ReadFile("/proc/sysvipc/shm"); err == nil && shared != "" && strings.Contains(string(all), shared) {
			t.Errorf("shared memory %s is still there", shared)
		}
		if _, err := os.Stat(s.Dir()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("its folder is still there: %v", err)
		}
		if s, err := d.start(t.Context(), servertest.Options{TLS: true}); err == nil {
			t.Errorf("%v speaks TLS", s)
		}
	})
}

func TestDatabaseHasAClockOfItsOwn(t *testing.T) {
	eachDatabase(t, func(database) servertest.Options { return servertest.Options{Clock: true} }, func(t *testing.T, d database, s *servertest.Server, must func(string) string) {
		for range 2 {
			if err := s.Step(time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		seconds, err := strconv.ParseFloat(must(d.now), 64)
		if ahead := seconds - float64(time.Now().Unix()); err != nil || ahead < 7000 || ahead > 7400 {
			t.Errorf("ahead by %v s, %v; want two hours", ahead, err)
		}
	})
}
