package servertest_test

import (
	stdsql "database/sql"
	"errors"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/interlock-go/interlock/internal/servertest"
)

// maria opens the database test as the superuser.
func maria(t *testing.T, s *servertest.Server) *stdsql.DB {
	t.Helper()
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName, c.Logger = "root", "tcp", s.Addr(), "test", &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := stdsql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func scan(t *testing.T, db *stdsql.DB, query string) (got string) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&got); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return got
}

func mustExec(t *testing.T, db *stdsql.DB, query string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func TestMariaDBKeepsItsDataOverStopAndKill(t *testing.T) {
	t.Parallel()
	s := servertest.MariaDB(t)
	db := maria(t, s)
	mustExec(t, db, "create table kept (n int)")
	for i, end := range []func() error{s.Stop, s.Kill} {
		mustExec(t, db, "insert into kept values (1)")
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if err := db.PingContext(t.Context()); err == nil {
			t.Error("a server that was ended answers")
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := scan(t, db, "select count(*) from kept"), strconv.Itoa(i+1); got != want {
			t.Errorf("after end %d the table has %s rows, want %s", i+1, got, want)
		}
	}
}

func TestMariaDBStopsWithClients(t *testing.T) {
	t.Parallel()
	s := servertest.MariaDB(t)
	db := maria(t, s)
	ended := make(chan error, 1)
	go func() {
		_, err := db.ExecContext(t.Context(), "do sleep(60)")
		ended <- err
	}()
	for end := time.Now().Add(30 * time.Second); scan(t, db, "select count(*) from information_schema.processlist where info = 'do sleep(60)'") != "1"; {
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
}

func TestMariaDBTakesArgumentsAndCleansUp(t *testing.T) {
	t.Parallel()
	s, err := servertest.StartMariaDB(t.Context(), servertest.Options{
		Args: []string{"--max-connections=17", "--sql-mode=ANSI_QUOTES"}, Env: []string{"TZ=Europe/Berlin"},
	})
	if err != nil {
		t.Fatal(err)
	}
	db := maria(t, s)
	const settings = "select concat_ws(' ', @@max_connections, @@sql_mode, @@bind_address, from_unixtime(1700000000), current_user())"
	if got, want := scan(t, db, settings), "17 ANSI_QUOTES 127.0.0.1 2023-11-14 23:13:20 root@127.0.0.1"; got != want {
		t.Errorf("settings %q, want %q", got, want)
	}
	if want := "mysql://root@" + s.Addr() + "/test"; s.URL() != want {
		t.Errorf("URL %s, want %s", s.URL(), want)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder is still there: %v", err)
	}
	if s, err := servertest.StartMariaDB(t.Context(), servertest.Options{TLS: true}); err == nil {
		t.Errorf("%v speaks TLS", s)
	}
}

func TestMariaDBHasAClockOfItsOwn(t *testing.T) {
	t.Parallel()
	s, err := servertest.StartMariaDB(t.Context(), servertest.Options{Clock: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 2 {
		if err := s.Step(time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	seconds, err := strconv.ParseFloat(scan(t, maria(t, s), "select unix_timestamp(sysdate(6))"), 64)
	if ahead := seconds - float64(time.Now().Unix()); err != nil || ahead < 7000 || ahead > 7400 {
		t.Errorf("ahead by %v s, %v; want two hours", ahead, err)
	}
}
