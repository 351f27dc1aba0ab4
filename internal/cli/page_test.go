package cli_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/interlock-go/interlock/internal/servertest"
)

var blocks = regexp.MustCompile("(?ms)^ *```([a-z]+)\n(.*?)^ *```")

// page returns the blocks of a page, each with its language.
func page(t *testing.T, name string) [][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return blocks.FindAllStringSubmatch(string(text), -1)
}

// What the page about advisory locks has is run in its order: statements by the superuser, commands
// as the roles that they name, beside a program that has locks by hand. What is Go stands in a test
// of package pglock.
func TestPageFromAdvisoryLocks(t *testing.T) {
	s := servertest.Postgres(t, "-c", "fsync=on") // else there is a warning between what is shown
	admin := connect(t, s.URL())
	execute(t, admin, "create role app login")
	for _, lock := range []string{"(43)", "(-5)", "(7, -8)", "(-1, 2)", "_shared(9223372036854775807)"} {
		execute(t, admin, "select pg_advisory_lock"+lock)
	}
	examples, err := os.ReadFile(filepath.Join("..", "..", "pglock", "example_advisory_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	host, rest, _ := strings.Cut(strings.TrimPrefix(s.URL(), "postgres://postgres@"), "?")
	at := strings.NewReplacer("//admin@db/shop", "//postgres@"+host+"?"+rest, "@db/shop?", "@"+host+"?"+rest+"&", "@db/shop", "@"+host+"?"+rest)
	said := []string{"", "nobody else has key 42\n42 in postgres://", "token 1", "holds both"}
	for _, b := range page(t, "from-advisory-locks.md") {
		switch text := b[2]; b[1] {
		case "sql":
			rows := query(t, admin, text)
			if strings.HasPrefix(text, "select") {
				slices.Sort(rows)
				if want := []string{"-1,2", "-5", "43", "7,-8", "9223372036854775807"}; !slices.Equal(rows, want) {
					t.Errorf("names %q, want %q", rows, want)
				}
			}
		case "go":
			if !strings.Contains(squeeze(string(examples)), squeeze(text)) {
				t.Errorf("no example of pglock has\n%s", text)
			}
		case "sh":
			if strings.Contains(text, "coupons/42") { // the only one by rows
				for _, b := range page(t, "backends/postgres.md") {
					if b[1] == "sql" {
						query(t, admin, b[2])
					}
				}
			}
			c := exec.CommandContext(t.Context(), "bash", "-e", "-c", at.Replace(text))
			c.Env = append(os.Environ(), "INTERLOCK_STORE="+at.Replace("postgres://app@db/shop?technique=session&keys=number"))
			out, err := c.CombinedOutput()
			if err != nil || len(said) == 0 || !strings.Contains(string(out), said[0]) {
				t.Fatalf("%s: %v, want %q\n%s", text, err, said, out)
			}
			said = said[1:]
		}
	}
	if len(said) > 0 {
		t.Errorf("not said: %q", said)
	}

	// Held by hand, it is held for the command.
	by := at.Replace("postgres://app@db/shop?technique=session&keys=number")
	out, err := exec.Command("interlock", "run", "--try", "--store", by, "7,-8", "--", "true").CombinedOutput()
	if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 75 || !strings.Contains(string(out), "keys=number") {
		t.Errorf("beside a lock by hand: %v\n%s", err, out)
	}

	for _, name := range [][]string{{"--", "-6"}, {" -6"}} {
		out, err = exec.Command("interlock", append(append([]string{"run", "--store", by}, name...), "--", "echo", "has -6")...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "has -6") {
			t.Errorf("a negative number: %v\n%s", err, out)
		}
	}

	// What stands in place of pg_terminate_backend.
	execute(t, connect(t, s.URL()), "select pg_advisory_lock(77)")
	out, err = exec.Command("interlock", "break", "--now", "--yes", "--store", strings.Replace(by, "app@", "postgres@", 1), "77").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "77: broke") {
		t.Errorf("break: %v\n%s", err, out)
	}

	// Without tables there are no tokens, and a notice says so.
	execute(t, admin, "create database bare")
	bare := strings.Replace(by, "/postgres?", "/bare?", 1)
	out, err = exec.Command("interlock", "run", "--store", bare, "7,-8", "--", "printenv", "INTERLOCK_FENCE").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "this store draws no tokens: INTERLOCK_FENCE is 0\n0\n") {
		t.Errorf("without tables: %v\n%s", err, out)
	}
}

// What the page about ShedLock has is run beside a program in Java that holds a name.
func TestPageFromShedLock(t *testing.T) {
	s := servertest.Postgres(t)
	admin := connect(t, s.URL())
	for _, b := range page(t, "backends/shedlock.md") {
		if b[1] == "sql" && !strings.Contains(b[2], "(3)") { // MySQL's
			execute(t, admin, b[2])
		}
	}
	execute(t, admin, "insert into shedlock values ('report', timezone('utc', now()) + interval '1 hour', timezone('utc', now()), 'pod-1')")
	by := strings.TrimPrefix(s.URL(), "postgres")
	at := strings.NewReplacer("://app@db/shop", by)
	said := []string{"pod-1", "holds both"}
	if out, err := exec.Command("interlock", "migrate", "--store", s.URL()).CombinedOutput(); err != nil {
		t.Fatalf("migrate: %v\n%s", err, out)
	}
	code, err := os.ReadFile(filepath.Join("..", "..", "shedlock", "example_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range page(t, "from-shedlock.md") {
		if b[1] == "go" && !strings.Contains(squeeze(string(code)), squeeze(b[2])) {
			t.Errorf("no example of shedlock has\n%s", b[2])
		}
		if b[1] != "sh" {
			continue
		}
		out, err := exec.CommandContext(t.Context(), "bash", "-e", "-c", at.Replace(b[2])).CombinedOutput()
		if err != nil || len(said) == 0 || !strings.Contains(string(out), said[0]) {
			t.Fatalf("%s: %v, want %q\n%s", b[2], err, said, out)
		}
		said = said[1:]
	}
	if len(said) > 0 {
		t.Errorf("not said: %q", said)
	}
	out, err := exec.Command("interlock", "run", "--try", "--store", "shedlock+postgres"+by, "report", "--", "true").CombinedOutput()
	if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 75 || !strings.Contains(string(out), "pod-1") {
		t.Errorf("beside a lock of ShedLock: %v\n%s", err, out)
	}
	out, err = exec.Command("interlock", "break", "--now", "--yes", "--store", "shedlock+postgres"+by, "report").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "report: broke") {
		t.Errorf("break: %v\n%s", err, out)
	}
}

// leavesNobody begins a script that ends what it has in the background, also where it fails: that
// has the pipe of the script's output, which is read until everybody has closed it.
const leavesNobody = `trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT
`

// What the page about etcdctl has is run beside etcdctl, and its Go stands in a test of package
// etcdlock.
func TestPageFromEtcdctl(t *testing.T) {
	s := servertest.Etcd(t)
	code, err := os.ReadFile(filepath.Join("..", "..", "etcdlock", "example_etcdctl_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	bash := func(script string) (string, error) {
		c := exec.CommandContext(t.Context(), "bash", "-e", "-c", leavesNobody+strings.ReplaceAll(script, "localhost:2379", s.Addr()))
		c.Env = append(os.Environ(), "ETCDCTL_API=3")
		out, err := c.CombinedOutput()
		return string(out), err
	}
	said := []string{"nobody else has nightly\nnightly in etcd://", "Role jobs updated", "token "}
	for _, b := range page(t, "from-etcdctl.md") {
		switch text := b[2]; b[1] {
		case "go":
			if !strings.Contains(squeeze(string(code)), squeeze(text)) {
				t.Errorf("no example of etcdlock has\n%s", text)
			}
		case "sh":
			out, err := bash(text)
			if err != nil || len(said) == 0 || !strings.Contains(out, said[0]) {
				t.Fatalf("%s: %v, want %q\n%s", text, err, said, out)
			}
			said = said[1:]
		}
	}
	if len(said) > 0 {
		t.Errorf("not said: %q", said)
	}
	// The old form around the new one: who has it is shown, and a try ends with 75.
	out, err := bash(`cat >job <<'J'
interlock run --try --store etcd://localhost:2379 nightly -- true; echo status $?
interlock elect --store etcd://localhost:2379 nightly
J
etcdctl --endpoints localhost:2379 lock nightly bash job; rm job`)
	if err != nil || !strings.Contains(out, "status 75") || !strings.Contains(out, "another program leads nightly, token ") || strings.Contains(out, ", for ") {
		t.Errorf("beside etcdctl: %v\n%s", err, out)
	}
	// A leader of the old form is shown with its value.
	out, err = bash(`etcdctl --endpoints localhost:2379 elect boss node-1 & old=$!
until interlock elect --store etcd://localhost:2379 boss; do sleep 0.1; done
kill $old`)
	if err != nil || !strings.Contains(out, "another program (node-1) leads boss, token ") {
		t.Errorf("who was elected by etcdctl: %v\n%s", err, out)
	}
}

// Who waits and whose place an operator takes away has not acquired the lock: status 75.
func TestBrokenWaiter(t *testing.T) {
	s := servertest.Etcd(t)
	// A claim whose request had no answer in time leaves, and another one comes: who was seen may
	// have gone when it is to be broken.
	c := exec.CommandContext(t.Context(), "bash", "-e", "-c", leavesNobody+`
interlock run held -- sleep 1000 & holder=$!
until interlock show held | grep -q holds; do sleep 0.1; done
interlock run held -- true & waiter=$!
until interlock show held | grep -q waits; do sleep 0.1; done
until interlock break held $(interlock show held | awk '$1 == "waits" { print $6, $5 }') || ! kill -0 $waiter; do sleep 0.1; done
wait $waiter || echo status $?`)
	c.Env = append(os.Environ(), "INTERLOCK_STORE="+s.URL()+"?timeout=30s")
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "status 75") || !strings.Contains(string(out), "broken by an operator") {
		t.Errorf("%v\n%s", err, out)
	}
}

// What the page about fencing has of a move between stores is run from a Redis to an etcd: tokens
// go on growing.
func TestPageFencing(t *testing.T) {
	redis, etcd := servertest.Redis(t), servertest.Etcd(t)
	at := strings.NewReplacer("localhost:6379", redis.Addr(), "localhost:2379", etcd.Addr())
	token := func(script string) (n uint64, said string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), "bash", "-e", "-c", at.Replace(script))
		c.Dir = t.TempDir()
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
		if _, text, ok := strings.Cut(string(out), "token "); ok {
			if n, err = strconv.ParseUint(strings.TrimSpace(text), 10, 64); err != nil {
				t.Fatalf("%s: %v", script, err)
			}
		}
		return n, string(out)
	}
	const run = ` coupons/42 -- sh -c 'echo "token $INTERLOCK_FENCE"'`
	seen, _ := token("interlock run --store redis://localhost:6379" + run)
	if n, _ := token("interlock run --store etcd://localhost:2379" + run); n >= seen {
		t.Fatalf("token %d without a base, after %d: there is nothing to show", n, seen)
	}
	moved := 0
	for _, b := range page(t, "fencing.md") {
		switch text := strings.ReplaceAll(b[2], "\n   ", "\n"); {
		case b[1] != "sh":
		case strings.Contains(text, " ls "):
			if _, said := token(text); !strings.Contains(said, "nobody holds or waits in redis://") {
				t.Errorf("%s: %s", text, said)
			}
			moved++
		default:
			if n, _ := token(text); n <= seen {
				t.Errorf("%s: token %d after %d", text, n, seen)
			}
			moved++
		}
	}
	if moved != 2 {
		t.Errorf("%d steps of the page were taken, want 2", moved)
	}
}

// squeeze leaves out what indents, and comments for tools.
func squeeze(code string) string {
	var lines []string
	for line := range strings.Lines(code) {
		line, _, _ = strings.Cut(line, " //nolint")
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	})
	return conn
}

func execute(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// query returns the last column of what the statements answer.
func query(t *testing.T, conn *pgx.Conn, sql string) (values []string) {
	t.Helper()
	results, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	for _, r := range results {
		for _, row := range r.Rows {
			values = append(values, string(row[len(row)-1]))
		}
	}
	return values
}
