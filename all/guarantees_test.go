package all

import (
	"database/sql"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/mysqllock"
	"github.com/interlock-go/interlock/pglock"
)

var update = flag.Bool("update", false, "write docs/guarantees.md anew")

const (
	page  = "../docs/guarantees.md"
	begin = "<!-- begin: written by go test ./all -update -->\n"
	end   = "<!-- end -->\n"
)

// stores are the stores that guarantees.md shows, each opened as its page in docs/backends does.
var stores = []struct {
	name string
	url  func(t *testing.T) string
}{
	{"memlock", func(*testing.T) string { return "mem:" }},
	{"filelock", func(t *testing.T) string { return "file:" + t.TempDir() + "/store" }},
	{"redislock", func(t *testing.T) string {
		return servertest.Redis(t, "--appendonly", "yes", "--appendfsync", "always").URL()
	}},
	{"pglock", postgres},
	{"pglock session", byTechnique("session")},
	{"pglock rowlock", byTechnique("rowlock")},
	{"mysqllock", mariadb},
	{"mysqllock session", func(t *testing.T) string { return mariadb(t) + "?technique=session" }},
	{"mysqllock rowlock", func(t *testing.T) string { return mariadb(t) + "?technique=rowlock" }},
	{"etcdlock", func(t *testing.T) string { return servertest.Etcd(t).URL() }},
	{"memcachedlock", func(t *testing.T) string { return servertest.Memcached(t).URL() }},
	{"redlock", func(t *testing.T) string {
		var addrs []string
		for range 3 {
			addrs = append(addrs, servertest.Redis(t, "--appendonly", "yes", "--appendfsync", "always").Addr())
		}
		return "redlock://" + strings.Join(addrs, ",")
	}},
	{"redissonlock", func(t *testing.T) string {
		return "redisson" + strings.TrimPrefix(servertest.Redis(t, "--appendonly", "yes", "--appendfsync", "always").URL(), "redis")
	}},
	{"shedlock postgres", shedlock("pgx", func(t *testing.T) (url, name, columns string) {
		s := servertest.Postgres(t, "-c", "fsync=on")
		return s.URL(), s.URL(), "timestamp"
	})},
	{"shedlock mysql", shedlock("mysql", func(t *testing.T) (url, name, columns string) {
		s := servertest.MariaDB(t)
		return s.URL(), "root@tcp(" + s.Addr() + ")/test", "timestamp(3)"
	})},
	{"zklock", func(t *testing.T) string { // with ZooKeeper's defaults
		return servertest.ZooKeeper(t, "tickTime=2000", "maxSessionTimeout=40000").URL()
	}},
}

// postgres starts a server that flushes what it commits, and makes the tables there.
func postgres(t *testing.T) string {
	t.Helper()
	s := servertest.Postgres(t, "-c", "fsync=on")
	config, o, err := pglock.ParseURL(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := pglock.Migrate(t.Context(), pool, o); err != nil {
		t.Fatal(err)
	}
	return s.URL()
}

// shedlock starts a server and makes ShedLock's table there.
func shedlock(client string, start func(t *testing.T) (url, name, columns string)) func(t *testing.T) string {
	return func(t *testing.T) string {
		url, name, columns := start(t)
		db, err := sql.Open(client, name)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(t.Context(), fmt.Sprintf("create table shedlock (name varchar(64) primary key, lock_until %[1]s, locked_at %[1]s, locked_by varchar(255))", columns)); err != nil {
			t.Fatal(err)
		}
		return "shedlock+" + url
	}
}

// mariadb has the tables of locks.
func mariadb(t *testing.T) string {
	t.Helper()
	s := servertest.MariaDB(t)
	config, o, err := mysqllock.ParseURL(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("mysql", config.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := mysqllock.Migrate(t.Context(), db, o); err != nil {
		t.Fatal(err)
	}
	return s.URL()
}

func byTechnique(name string) func(t *testing.T) string {
	return func(t *testing.T) string { return postgres(t) + "&technique=" + name }
}

// The table of guarantees says what the drivers say, and nothing else.
func TestGuaranteesPageIsWhatTheDriversPromise(t *testing.T) {
	var rows [][]string
	for _, s := range stores {
		d, err := driver.OpenURL(t.Context(), s.url(t))
		if err != nil {
			t.Fatal(err)
		}
		driverName, technique, _ := strings.Cut(s.name, " ")
		rows = append(rows, append([]string{strings.TrimSpace("`" + driverName + "` " + technique)}, cells(d.Traits())...))
		if err := d.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	want := begin + table(rows) + end
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	i, j := strings.Index(text, begin), strings.Index(text, end)
	if i < 0 || j < i {
		t.Fatalf("%s lacks the lines %q and %q", page, begin, end)
	}
	if *update {
		if err := os.WriteFile(page, []byte(text[:i]+want+text[j+len(end):]), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got := text[i : j+len(end)]; got != want {
		t.Errorf("%s differs from what the drivers promise; go test ./all -update writes:\n%s", page, want)
	}
}

var heads = []string{
	"store", "ordered", "readers", "permits", "kinds mix", "events", "expires", "tokens", "TTL", "expiry late by", "sees a death within", "claims survive",
}

func span(t driver.Traits) string {
	if t.MaxTTL == 0 {
		return short(t.MinTTL) + " or more"
	}
	return short(t.MinTTL) + " – " + short(t.MaxTTL)
}

func cells(t driver.Traits) []string {
	notice := "–"
	if t.Notice > 0 {
		notice = short(t.Notice)
	}
	var survives []string
	for _, s := range []struct {
		name string
		has  bool
	}{{"process", t.Survives.Process}, {"store restart", t.Survives.Restart}, {"machine restart", t.Survives.Machine}} {
		if s.has {
			survives = append(survives, s.name)
		}
	}
	if survives == nil {
		survives = []string{"nothing"}
	}
	tokens := t.Fence.String()
	if t.Single {
		tokens += ", raw"
	}
	return []string{
		yes(t.Ordered), yes(t.Shared), yes(t.Counted), yes(t.Mixed), events(t), yes(t.Expires), tokens,
		span(t), short(t.Grain), notice, strings.Join(survives, ", "),
	}
}

// events are yes where all that wait are told, whatever their kind.
func events(t driver.Traits) string {
	if t.Events == 0 || t.Has()&driver.Events != 0 {
		return yes(t.Events != 0)
	}
	return t.Events.String()
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func short(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	if day := 24 * time.Hour; d > 2*day {
		return fmt.Sprintf("%d days", d/day)
	}
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}

func table(rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(heads)
	rule := make([]string, len(heads))
	for i := range rule {
		rule[i] = "---"
	}
	line(rule)
	for _, r := range rows {
		line(r)
	}
	return b.String()
}
