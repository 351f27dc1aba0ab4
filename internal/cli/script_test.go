//go:build linux

package cli_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	_ "github.com/interlock-go/interlock/all" // as cmd/interlock
	"github.com/interlock-go/interlock/internal/cli"
	_ "github.com/interlock-go/interlock/internal/early"
	_ "github.com/interlock-go/interlock/internal/early/ahead"
	"github.com/interlock-go/interlock/internal/guard/guardtest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// The test binary is also the command interlock, and so, executed again, the guard.
func TestMain(m *testing.M) {
	// The race detector makes every process wait for a second at its end; there are hundreds here.
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	testscript.Main(m, map[string]func(){
		"interlock": func() { os.Exit(cli.Main(os.Args[1:])) },
		"fenced":    fenced,
		"stopper":   stopper,
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			store := "file:" + filepath.Join(e.WorkDir, "store")
			e.Setenv("INTERLOCK_STORE", store)
			e.Defer(func() { endAll(store) })
			if err := makeProgramsExecutable(e.WorkDir); err != nil {
				return err
			}
			for _, name := range []string{"GORACE", "INTERLOCK_BUG"} {
				e.Setenv(name, os.Getenv(name))
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    exits,
			"answered": answered,
			"until":    until,
			"signal":   signal,

			"redis":     serves(servertest.Start),
			"postgres":  serves(servertest.StartPostgres),
			"mariadb":   serves(servertest.StartMariaDB),
			"etcd":      serves(servertest.StartEtcd),
			"memcached": serves(servertest.StartMemcached),
			"zookeeper": serves(servertest.StartZooKeeper),
			"shedlock":  shedlock,
		},
		RequireExplicitExec: true,
	})
}

// line is what the scripts' commands need of a line in JSON.
type line struct {
	Claims []struct {
		Owner struct {
			PID int `json:"pid"`
		} `json:"owner"`
	} `json:"claims"`
}

// endAll kills the processes that hold or wait, which a script that failed leaves behind. Their
// commands end with them.
func endAll(store string) {
	ls := exec.Command("interlock", "ls", "--json", "--store", store)
	out, err := ls.Output()
	var lines []line
	if err != nil || json.Unmarshal(out, &lines) != nil {
		return
	}
	for _, l := range lines {
		for _, c := range l.Claims {
			_ = syscall.Kill(c.Owner.PID, syscall.SIGKILL)
		}
	}
}

// makeProgramsExecutable does that to the files of a script that begin with #!.
func makeProgramsExecutable(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if text, err := os.ReadFile(path); err == nil && strings.HasPrefix(string(text), "#!") {
			if err := os.Chmod(path, 0o755); err != nil {
				return err
			}
		}
	}
	return nil
}

// exits N PROGRAM ARGS… runs a program that must end with exit status N.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS PROGRAM [ARG…]")
	}
	if got := status(ts, args[1:]); strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit status %d, want %s", got, args[0])
	}
}

// answered N PROGRAM ARGS… is exits for a program that gives the store little time. On a busy
// machine that is over before the store has answered anything, which exit status 69 says: it runs
// again.
func answered(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: answered STATUS PROGRAM [ARG…]")
	}
	end := time.Now().Add(guardtest.Patience())
	got := status(ts, args[1:])
	for got == 69 && time.Now().Before(end) {
		got = status(ts, args[1:])
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit status %d, want %s", got, args[0])
	}
}

// status runs a program and returns its exit status.
func status(ts *testscript.TestScript, words []string) int {
	err := ts.Exec(words[0], words[1:]...)
	if err == nil {
		return 0
	}
	var ee *exec.ExitError
	if !errors.As(err, &ee) {
		ts.Fatalf("%v", err)
	}
	if ws, ok := ee.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ee.ExitCode()
}

// serves is a command that starts a server and makes it the store of what follows. ADDR is its
// address.
func serves(start func(context.Context, servertest.Options) (*servertest.Server, error)) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) > 0 {
			ts.Fatalf("usage: the name of a kind of server, and nothing else")
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		s, err := start(ctx, servertest.Options{})
		ts.Check(err)
		ts.Defer(func() { ts.Check(s.Close()) })
		ts.Setenv("INTERLOCK_STORE", s.URL())
		ts.Setenv("ADDR", s.Addr())
	}
}

// shedlock starts a database, postgres or mariadb, makes ShedLock's table there and that the store
// of what follows.
func shedlock(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: shedlock postgres|mariadb")
	}
	client, columns := "pgx", "lock_until timestamp, locked_at timestamp"
	if args[0] == "postgres" {
		serves(servertest.StartPostgres)(ts, false, nil)
	} else {
		serves(servertest.StartMariaDB)(ts, false, nil)
		client, columns = "mysql", "lock_until timestamp(3) not null, locked_at timestamp(3) not null"
	}
	at := ts.Getenv("INTERLOCK_STORE")
	ts.Setenv("INTERLOCK_STORE", "shedlock+"+at)
	if client == "mysql" {
		u, err := url.Parse(at)
		ts.Check(err)
		at = "root@tcp(" + u.Host + ")" + u.Path
	}
	db, err := sql.Open(client, at)
	ts.Check(err)
	defer db.Close()
	_, err = db.Exec("create table shedlock (name varchar(64) primary key, " + columns + ", locked_by varchar(255))")
	ts.Check(err)
}

// until PATTERN PROGRAM ARGS… runs a program again and again until its output matches; ! until,
// until it does not.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: until PATTERN PROGRAM [ARG…]")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for end := time.Now().Add(guardtest.Patience()); ; time.Sleep(5 * time.Millisecond) {
		_ = ts.Exec(args[1], args[2:]...)
		if pattern.MatchString(ts.ReadFile("stdout")) != neg {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("the output never became so")
		}
	}
}

// signal SIGNAL NAME sends a signal to the interlock that holds the lock NAME.
func signal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: signal TERM NAME")
	}
	signals := map[string]syscall.Signal{
		"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "USR1": syscall.SIGUSR1,
		"KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT,
	}
	ts.Check(ts.Exec("interlock", "show", "--json", args[1]))
	var line line
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &line))
	if len(line.Claims) == 0 {
		ts.Fatalf("nobody holds %s", args[1])
	}
	ts.Check(syscall.Kill(line.Claims[0].Owner.PID, signals[args[0]]))
}
