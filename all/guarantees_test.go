package all

import (
	"database/sql"
	"flag"
	"fmt"
	"os"
	"slices"
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

	between = "Other settings, as the drivers see them when they open a server:\n"
)

// stores are the stores that guarantees.md shows, each opened as its page in docs/backends does, on a server as it is shipped
// and, where that is another one, on a server that has each write on its disk before it answers.
var stores = []struct {
	name            string
	shipped, synced func(t *testing.T) string // URLs
}{
	{"memlock", func(*testing.T) string { return "mem:" }, nil},
	{"filelock", func(t *testing.T) string { return "file:" + t.TempDir() + "/store" }, nil},
	{"redislock", redis("redis", 1, debian), redis("redis", 1, always)},
	{"pglock", postgres, nil},
	{"pglock session", byTechnique("session"), nil},
	{"pglock rowlock", byTechnique("rowlock"), nil},
	{"mysqllock", mariadb, nil},
	{"mysqllock session", func(t *testing.T) string { return mariadb(t) + "?technique=session" }, nil},
	{"mysqllock rowlock", func(t *testing.T) string { return mariadb(t) + "?technique=rowlock" }, nil},
	{"etcdlock", func(t *testing.T) string { return servertest.Etcd(t).URL() }, nil},
	{"memcachedlock", func(t *testing.T) string { return servertest.Memcached(t).URL() }, nil},
	{"redlock", redis("redlock", 3, debian), redis("redlock", 3, always)},
	{"redissonlock", redis("redisson", 1, debian), redis("redisson", 1, always)},
	{"shedlock postgres", shedlock("pgx", pgSettings("-c", "fsync=on")), nil},
	{"shedlock mysql", shedlock("mysql", mariadbSettings()), nil},
	{"zklock", func(t *testing.T) string { // with ZooKeeper's defaults
		return servertest.ZooKeeper(t, "tickTime=2000", "maxSessionTimeout=40000").URL()
	}, nil},
}

// weaker are settings that decide, or could be thought to decide, what a store promises.
var weaker = []struct {
	store, setting string
	url            func(t *testing.T) string
}{
	{"redislock", "`appendonly yes`, `appendfsync everysec`", redis("redis", 1, everysec)},
	{"redissonlock", "`appendonly yes`, `appendfsync everysec`", redis("redisson", 1, everysec)},
	{"redlock", "`appendonly yes`, `appendfsync everysec`", redis("redlock", 3, everysec)},
	{"pglock", "`fsync off`", pglockOn("-c", "fsync=off")},
	{"pglock", "`full_page_writes off`", pglockOn("-c", "fsync=on", "-c", "full_page_writes=off")},
	{"pglock", "`synchronous_commit off`", pglockOn("-c", "fsync=on", "-c", "synchronous_commit=off")},
	{"mysqllock", "`innodb_flush_log_at_trx_commit 2`", mysqllockOn("--innodb-flush-log-at-trx-commit=2")},
	{"mysqllock", "`innodb_flush_log_at_trx_commit 0`", mysqllockOn("--innodb-flush-log-at-trx-commit=0")},
	{"shedlock postgres", "`fsync off` or `full_page_writes off`", shedlock("pgx", pgSettings("-c", "fsync=off"))},
	{"shedlock postgres", "`synchronous_commit off`", shedlock("pgx", pgSettings("-c", "fsync=on", "-c", "synchronous_commit=off"))},
	{"shedlock mysql", "`innodb_flush_log_at_trx_commit 2`", shedlock("mysql", mariadbSettings("--innodb-flush-log-at-trx-commit=2"))},
	{"shedlock mysql", "`innodb_flush_log_at_trx_commit 0`", shedlock("mysql", mariadbSettings("--innodb-flush-log-at-trx-commit=0"))},
}

// Settings of Redis: those of Debian's redis.conf that decide what it keeps, a log that is synced once a second, and one that
// is synced before each answer.
var (
	debian   = []string{"--appendonly", "no", "--appendfsync", "everysec", "--save", "3600 1 300 100 60 10000"}
	everysec = []string{"--appendonly", "yes", "--appendfsync", "everysec"}
	always   = []string{"--appendonly", "yes", "--appendfsync", "always"}
)

// redis starts so many servers.
func redis(scheme string, n int, settings []string) func(t *testing.T) string {
	return func(t *testing.T) string {
		var addrs []string
		for range n {
			addrs = append(addrs, servertest.Redis(t, settings...).Addr())
		}
		return scheme + "://" + strings.Join(addrs, ",")
	}
}

// The databases as they are shipped, with the tables of locks.
var (
	postgres = pglockOn("-c", "fsync=on")
	mariadb  = mysqllockOn()
)

func pglockOn(settings ...string) func(t *testing.T) string {
	return func(t *testing.T) string {
		s := servertest.Postgres(t, settings...)
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
}

// pgSettings and mariadbSettings start servers for ShedLock's table.
func pgSettings(settings ...string) func(t *testing.T) (url, name, columns string) {
	return func(t *testing.T) (url, name, columns string) {
		s := servertest.Postgres(t, settings...)
		return s.URL(), s.URL(), "timestamp"
	}
}

func mariadbSettings(settings ...string) func(t *testing.T) (url, name, columns string) {
	return func(t *testing.T) (url, name, columns string) {
		s := servertest.MariaDB(t, settings...)
		return s.URL(), "root@tcp(" + s.Addr() + ")/test", "timestamp(3)"
	}
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

func mysqllockOn(settings ...string) func(t *testing.T) string {
	return func(t *testing.T) string {
		s := servertest.MariaDB(t, settings...)
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
}

func byTechnique(name string) func(t *testing.T) string {
	return func(t *testing.T) string { return postgres(t) + "&technique=" + name }
}

// traits are those of the store at a URL, as it was opened.
func traits(t *testing.T, url string) driver.Traits {
	t.Helper()
	d, err := driver.OpenURL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return d.Traits()
}

func shown(store string) string {
	driverName, technique, _ := strings.Cut(store, " ")
	return strings.TrimSpace("`" + driverName + "` " + technique)
}

// The tables of guarantees say what the drivers say when they have opened a server with these settings, and nothing else.
func TestGuaranteesPageIsWhatTheDriversPromise(t *testing.T) {
	rows := slices.Concat([][]string{heads}, make([][]string, len(stores)))
	weak := slices.Concat([][]string{{"store", "with", "tokens", "claims survive"}}, make([][]string, len(weaker)))
	t.Run("open", func(t *testing.T) {
		for i, s := range stores {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				shipped := traits(t, s.shipped(t))
				synced := shipped
				if s.synced != nil {
					synced = traits(t, s.synced(t))
				}
				rows[i+1] = append([]string{shown(s.name)}, cells(t, shipped, synced)...)
			})
		}
		for i, w := range weaker {
			t.Run(w.store+" "+w.setting, func(t *testing.T) {
				t.Parallel()
				got := traits(t, w.url(t))
				weak[i+1] = []string{shown(w.store), w.setting, tokens(got), survives(got)}
			})
		}
	})
	if t.Failed() {
		return
	}
	want := begin + table(rows) + "\n" + between + "\n" + table(weak) + end
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
	"store", "ordered", "readers", "permits", "kinds mix", "events", "expires", "tokens", "TTL", "expiry late by", "sees a death within",
	"claims survive, as shipped", "claims survive, synced",
}

func span(t driver.Traits) string {
	if t.MaxTTL == 0 {
		return short(t.MinTTL) + " or more"
	}
	return short(t.MinTTL) + " – " + short(t.MaxTTL)
}

// cells are a row of the table: of a server as it is shipped, and of one that syncs.
func cells(t *testing.T, shipped, synced driver.Traits) []string {
	t.Helper()
	notice := "–"
	if shipped.Notice > 0 {
		notice = short(shipped.Notice)
	}
	drawn := tokens(shipped)
	if other := tokens(synced); other != drawn {
		drawn += "; synced: " + other
	}
	same := synced
	same.Fence, same.Survives = shipped.Fence, shipped.Survives
	if same != shipped {
		t.Errorf("a setting decides more than tokens and what claims survive: %+v and %+v: want a column for that", shipped, synced)
	}
	return []string{
		yes(shipped.Ordered), yes(shipped.Shared), yes(shipped.Counted), yes(shipped.Mixed), events(shipped), yes(shipped.Expires), drawn,
		span(shipped), short(shipped.Grain), notice, survives(shipped), survives(synced),
	}
}

func tokens(t driver.Traits) string {
	if t.Single {
		return t.Fence.String() + ", raw"
	}
	return t.Fence.String()
}

func survives(t driver.Traits) string {
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
		return "nothing"
	}
	return strings.Join(survives, ", ")
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

// table writes rows of which the first is the heads.
func table(rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(rows[0])
	line(slices.Repeat([]string{"---"}, len(rows[0])))
	for _, r := range rows[1:] {
		line(r)
	}
	return b.String()
}
