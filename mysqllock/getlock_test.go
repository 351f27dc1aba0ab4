package mysqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/mysqllock"
)

// bySession is the URL of technique session.
func bySession(s *servertest.Server, more ...string) string {
	return strings.Join(append([]string{s.URL() + "?technique=session"}, more...), "&")
}

// byHand is a connection of somebody else, which asks for a number.
func byHand(t *testing.T, s *servertest.Server) func(query string) int {
	t.Helper()
	c, err := pool(t, s.URL()).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return func(query string) int {
		t.Helper()
		var n sql.NullInt64
		if err := c.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return int(n.Int64)
	}
}

// threads returns what counts the connections of sessions: each has a lock whose name is of its
// number.
func threads(t *testing.T, s *servertest.Server) func() int {
	t.Helper()
	count := byHand(t, s)
	return func() int {
		t.Helper()
		return count("select count(*) from information_schema.processlist where is_used_lock(concat('interlock@', id)) = id")
	}
}

// A session has one connection, and one more for each claim that waits or has waited; above the cap
// it is said.
func TestConnectionsOfASession(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	a, b, threads := user(t, bySession(s)), user(t, bySession(s, "max_waiting=3")), threads(t, s)
	var all []driver.Claim
	for i := range 50 {
		mine := mutex(fmt.Sprint("many/", i))
		asks(t, a, mine, true)
		all = append(all, mine)
	}
	if n := threads(); n != 2 {
		t.Errorf("%d connections for two sessions and fifty locks, want 2", n)
	}
	var waits []driver.Claim
	for i := range 3 {
		next := mutex(fmt.Sprint("many/", i))
		asks(t, b, next, false)
		waits = append(waits, next)
	}
	one := mutex("many/3")
	if _, err := b.Acquire(t.Context(), one); !errors.Is(err, driver.ErrUnable) || !errors.Is(err, driver.ErrNotSent) || !strings.Contains(err.Error(), "raise MaxWaiting") {
		t.Errorf("a fourth claim that waits: %v", err)
	}
	leaves(t, b, one, false)
	if n := threads(); n != 5 {
		t.Errorf("%d connections while three claims wait, want 5", n)
	}
	for i, next := range waits {
		leaves(t, a, all[i], true)
		awaits(t, b, next)
		leaves(t, b, next, true)
	}
	until(t, "connections that have nothing are closed but for two", func() bool { return threads() <= 4 })
	for _, mine := range all[3:] {
		leaves(t, a, mine, true)
	}
}

// Each form does the same: with a sequence and without, over a stream of our own, and over a
// client's connector that nobody can look into.
func TestFormsOfSession(t *testing.T) {
	t.Parallel()
	for form, migrate := range map[string]func(context.Context, *sql.DB) error{
		"MariaDB": func(ctx context.Context, db *sql.DB) error { return mysqllock.Migrate(ctx, db, nil) }, "MySQL": mysqllock.MigrateAsMySQL,
	} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			s := servertest.MariaDB(t)
			if _, err := driver.OpenURL(t.Context(), bySession(s)); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "interlock migrate") {
				t.Errorf("without tables: %v", err)
			}
			if err := migrate(t.Context(), pool(t, s.URL())); err != nil {
				t.Fatal(err)
			}
			b := user(t, bySession(s))
			cycle(t, user(t, bySession(s)), b)
			if err := b.Close(t.Context()); err != nil {
				t.Error(err)
			}
			c, _, err := mysqllock.ParseURL(s.URL())
			if err != nil {
				t.Fatal(err)
			}
			connector, err := mysql.NewConnector(c)
			if err != nil {
				t.Fatal(err)
			}
			var both [2]driver.Session
			for i := range both {
				d, err := mysqllock.NewConnector(t.Context(), connector, &mysqllock.Options{Technique: "session"})
				if err != nil {
					t.Fatal(err)
				}
				if both[i], err = session(t, d, time.Minute); err != nil {
					t.Fatal(err)
				}
			}
			cycle(t, both[0], both[1])
			if err := both[1].Close(t.Context()); err != nil {
				t.Error(err)
			}
			left := threads(t, s)
			until(t, "all connections are closed with their sessions", func() bool { return left() == 0 })
		})
	}
}

// What cannot be is said.
func TestBadInputOfSession(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for url, want := range map[string]string{
		bySession(s, "keys=no"):                           `unknown keys "no": want one of django_mysql, dotnet, interlock, name`,
		bySession(s, "max_waiting=0"):                     "want a number such as 32",
		s.URL() + "?keys=name":                            "want technique=session",
		bySession(s, "keys=name", "ttl=1"):                "unknown parameter",
		s.URL() + "?technique=advisory":                   "want rows, session or rowlock",
		bySession(s, "prefix=absent_"):                    "interlock migrate",
		"mysql://root@127.0.0.1:1/test?technique=session": "connection refused",
	} {
		if _, err := enter(t, url, time.Minute); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", url, err, want)
		}
	}
	if _, err := mysqllock.New(t.Context(), pool(t, s.URL()), &mysqllock.Options{Technique: "session"}); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "NewConnector") {
		t.Errorf("over the program's pool: %v", err)
	}
	a := user(t, bySession(s))
	reads := mutex("read")
	reads.Kind, reads.Weight = driver.Read, 1
	if _, err := a.Acquire(t.Context(), reads); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "mutexes only") {
		t.Errorf("a reader: %v", err)
	}
	named := user(t, bySession(s, "keys=name"))
	for _, name := range []string{"Job", "a b", "it's", `a\b`, "ä", strings.Repeat("x", 65), "tab\t"} {
		if _, err := named.Acquire(t.Context(), mutex(name)); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "want at most 64 characters") {
			t.Errorf("%q as a key: %v", name, err)
		}
	}
}

// By the key that others make of a name both have one lock, whoever comes first.
func TestOthersHaveTheSameLock(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for _, of := range []struct{ keys, name, key string }{
		{"interlock", "coupons/42", "interlock_:test/coupons/42"},
		{"interlock", "Coupons 42", "interlock_#sbhova3wr7s4tijuh2ornm6yuu3xlijz"},
		{"name", "foo", "foo"},
		{"name", strings.Repeat("x", 64), strings.Repeat("x", 64)},
		{"django_mysql", "foo", "test.foo"},
		{"dotnet", "foo", "foo"},
		{"dotnet", "ABC", "abczj4qr6tvn4a3kmgq4bukhowqyfrlxsb3"}, // this and the next are of its own tests
		{"dotnet", strings.Repeat("x", 65), strings.Repeat("x", 32) + "gkd2zq6c6ey6mhs45clqg7vij6ycgo43"},
	} {
		d, err := driver.OpenURL(t.Context(), bySession(s, "keys="+of.keys))
		if err != nil {
			t.Fatal(err)
		}
		a, err := session(t, d, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if key := d.(driver.Keyer).Key(of.name); key != of.key {
			t.Errorf("the key of %q by %s is %s, want %s", of.name, of.keys, key, of.key)
		}
		other, get, leave := byHand(t, s), "select get_lock('"+of.key+"', 0)", "select release_lock('"+of.key+"')"
		mine := mutex(of.name)
		asks(t, a, mine, true)
		if other(get) != 0 {
			t.Errorf("%s: another program has a lock that we have", of.key)
		}
		leaves(t, a, mine, true)
		if other(get) != 1 {
			t.Errorf("%s: another program has no lock that is free", of.key)
		}
		next := mutex(of.name)
		asks(t, a, next, false)
		other(leave)
		awaits(t, a, next)
		leaves(t, a, next, true)
	}
}

// People see who has a name and who waits, and can end a connection.
func TestLookIntoSession(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	viewer, err := driver.OpenURL(t.Context(), bySession(s))
	if err != nil {
		t.Fatal(err)
	}
	defer viewer.Close(t.Context())
	look := viewer.(driver.Inspector)
	line := func(want int) []driver.Holder {
		t.Helper()
		l, err := look.Line(t.Context(), "looked at")
		if err != nil || len(l.Claims) != want {
			t.Fatalf("%d claims, %v; want %d", len(l.Claims), err, want)
		}
		return l.Claims
	}
	line(0)
	a, b := user(t, bySession(s)), user(t, bySession(s))
	mine, next := mutex("looked at"), mutex("looked at")
	asks(t, a, mine, true)
	asks(t, b, next, false)
	all := line(2)
	for i, h := range all {
		if h.Held != (i == 0) || h.Foreign || h.Kind != driver.Mutex || h.Owner.User != "root" || h.Owner.Host != "127.0.0.1" || h.Since.IsZero() != (i == 0) {
			t.Errorf("claim %d is shown as %+v", i, h)
		}
	}
	if _, err := look.Lines(t.Context(), ""); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Lines: %v", err)
	}
	refused := func(look driver.Inspector, id string, fence uint64, now bool, says string, as error) {
		t.Helper()
		if err := look.Break(t.Context(), "looked at", id, fence, now); !errors.Is(err, as) || !strings.Contains(err.Error(), says) {
			t.Errorf("Break: %v; want: %s", err, says)
		}
	}
	refused(look, driver.PublicID("nobody"), 0, true, "no claim", driver.ErrRefused)
	refused(look, all[0].PublicID, 32, true, "no claim", driver.ErrRefused)
	refused(look, all[0].PublicID, 0, false, "cannot be marked", driver.ErrOnlyNow)
	execute(t, s, "create user viewer", "grant process on *.* to viewer", "grant select on test.interlock_version to viewer")
	other, err := driver.OpenURL(t.Context(), strings.Replace(bySession(s), "root@", "viewer@", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(t.Context())
	refused(other.(driver.Inspector), all[0].PublicID, 0, true, "another user's", driver.ErrRefused)
	for i, of := range []struct {
		driver.Session
		driver.Claim
	}{1: {b, next}, 0: {a, mine}} { // who holds, then who waits
		if err := look.Break(t.Context(), "looked at", all[i].PublicID, 0, true); err != nil {
			t.Fatal(err)
		}
		told(t, of.Session, of.Claim)
		if i == 0 {
			awaits(t, b, next)
		}
	}
	until(t, "nobody has it any more", func() bool {
		l, err := look.Line(t.Context(), "looked at")
		return err == nil && len(l.Claims) == 0
	})
	byHand(t, s)("select get_lock('" + viewer.(driver.Keyer).Key("looked at") + "', 0)")
	if h := line(1)[0]; !h.Foreign || !h.Held {
		t.Errorf("one who is not ours is shown as %+v", h)
	}
}

// A connection is given again what it has: this does not show.
func TestSessionIsNotReentrant(t *testing.T) {
	t.Parallel()
	a := user(t, bySession(migrated(t)))
	one, two := mutex("again"), mutex("again")
	asks(t, a, one, true)
	if g, err := a.Acquire(t.Context(), tries("again")); err != nil || g.Held {
		t.Errorf("a second mutex of the session: held %v, %v", g.Held, err)
	}
	asks(t, a, two, false)
	leaves(t, a, one, true)
	awaits(t, a, two)
	leaves(t, a, two, true)
}

// The rights that the page gives for the technique are enough, and they alone are what the user has
// here.
func TestRightsOfSession(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	text, err := os.ReadFile("../docs/backends/mysql.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Technique session\n")
	_, grants, _ := strings.Cut(section, "```sql\n")
	grants, _, found := strings.Cut(grants, "```")
	if !found {
		t.Fatal("the page gives no rights")
	}
	execute(t, s, "create user app")
	for grant := range strings.Lines(strings.ReplaceAll(grants, "shop.", "test.")) {
		execute(t, s, strings.TrimSuffix(grant, ";\n"))
	}
	url := strings.Replace(bySession(s), "root@", "app@", 1)
	cycle(t, user(t, url), user(t, url))
}

// What an administrator may set does not break locks that live with connections.
func TestSettingsOfSession(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for _, set := range []string{
		"sql_mode=''", "sql_mode='ANSI,NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES'", "autocommit=0", "wait_timeout=1", "max_statement_time=0.05",
		"tx_isolation='REPEATABLE-READ'", "tx_isolation='SERIALIZABLE'", "lock_wait_timeout=1", "innodb_flush_log_at_trx_commit=2",
	} {
		execute(t, s, "set global "+set)
		a, b := user(t, bySession(s)), user(t, bySession(s))
		mine, next := mutex("settings"), mutex("settings")
		asks(t, a, mine, true)
		asks(t, b, next, false)
		time.Sleep(100 * time.Millisecond) // longer than a statement may take
		leaves(t, a, mine, true)
		if g := awaits(t, b, next); g.Fence == 0 {
			t.Errorf("%s: no token", set)
		}
		leaves(t, b, next, true)
		name, _, _ := strings.Cut(set, "=")
		execute(t, s, "set global "+name+" = default")
	}
}
