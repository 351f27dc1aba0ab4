package pglock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
	"github.com/interlock-go/interlock/pglock"
)

// execute runs SQL as the superuser, over a connection of its own: tests end others.
func execute(t *testing.T, s *servertest.Server, sql string) {
	t.Helper()
	conn := connect(t, s)
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// ask returns the only value of a query of the superuser.
func ask[V any](t *testing.T, s *servertest.Server, sql string) (v V) {
	t.Helper()
	conn := connect(t, s)
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func connect(t *testing.T, s *servertest.Server) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// What users of locks do.
var (
	user, enter          = storetest.User, storetest.Enter
	mutex, tries         = storetest.Mutex, storetest.Tries
	asks, awaits, leaves = storetest.Asks, storetest.Awaits, storetest.Leaves
	until                = storetest.Until
)

// cycle is everything that users of locks do at a URL.
func cycle(t *testing.T, url string) {
	t.Helper()
	storetest.Cycle(t, user(t, url), user(t, url))
}

func TestMigrateAtOnceAndAgain(t *testing.T) {
	t.Parallel()
	s := servertest.Postgres(t)
	p := pool(t, s.URL()+"&pool_max_conns=10")
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if err := pglock.Migrate(t.Context(), p, nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	cycle(t, s.URL())
	execute(t, s, "update interlock.version set version = 7")
	if err := pglock.Migrate(t.Context(), p, nil); err == nil || !strings.Contains(err.Error(), "version 7") {
		t.Errorf("a newer schema is migrated: %v", err)
	}
	for version, want := range map[string]string{"0": "is empty or not ours", "2": "", "3": "run a newer one"} {
		execute(t, s, "update interlock.version set version = "+version)
		_, err := enter(t, s.URL(), time.Second)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("a schema of version %s: %v; want %q", version, err, want)
		}
	}
}

func TestSchemaByHand(t *testing.T) {
	t.Parallel()
	s := servertest.Postgres(t)
	for _, o := range []*pglock.Options{nil, {Schema: "public", Prefix: "il_"}, {Schema: "other"}} {
		sql, err := pglock.Schema(o)
		if err != nil {
			t.Fatal(err)
		}
		execute(t, s, "begin; "+sql+"; commit")
	}
	cycle(t, s.URL())
	holds := mutex("cycle")
	asks(t, user(t, s.URL()), holds, true) // in one set of tables, and in no other
	cycle(t, s.URL()+"&schema=public&prefix=il_")
	cycle(t, s.URL()+"&schema=other")
	if err := pglock.Migrate(t.Context(), pool(t, s.URL()), &pglock.Options{Schema: "public", Prefix: "il_"}); err != nil {
		t.Error(err)
	}
}

// A role of the least rights does all that a user of locks does; one without any can neither hear
// nor forge.
func TestRights(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	execute(t, s, `create role app login; grant usage on schema interlock to app;
		grant select on interlock.version to app; grant select, insert, update on interlock.lock to app;
		grant select, insert, update, delete on interlock.session to app; create role nobody login`)
	app, nobody := strings.Replace(s.URL(), "postgres@", "app@", 1), strings.Replace(s.URL(), "postgres@", "nobody@", 1)
	cycle(t, app)
	_, err := enter(t, nobody, time.Second)
	if !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "the role needs USAGE of schema interlock") {
		t.Errorf("a role without rights: %v; want which it lacks", err)
	}

	a, b := user(t, app), user(t, app)
	mine, next := mutex("secret"), mutex("secret")
	asks(t, a, mine, true)
	asks(t, b, next, false)
	p := pool(t, nobody)
	for _, sql := range []string{"select * from interlock.lock", "select * from interlock.session", "select interlock.nonce('x')"} {
		if _, err := p.Exec(t.Context(), sql); err == nil {
			t.Errorf("a role without rights may do %s", sql)
		}
	}
	var seen int
	if err := p.QueryRow(t.Context(), "select count(*) from pg_stat_activity where query like '%listen \"il%' and pid <> pg_backend_pid()").Scan(&seen); err != nil || seen != 0 {
		t.Errorf("a role without rights sees %d names of channels, %v", seen, err)
	}
	channel := ask[string](t, s, "select channel from interlock.session limit 1") // which it does not know
	for _, name := range []string{driver.PublicID(next.ID), "*"} {
		if _, err := p.Exec(t.Context(), "select pg_notify($1, $2)", channel, "h "+name+" 99"); err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if g, _ := b.Wait(ctx, next); g.Held {
		t.Error("held before it was handed over")
	}
	leaves(t, a, mine, true)
	awaits(t, b, next)
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	s := servertest.Postgres(t)
	_, err := enter(t, s.URL(), time.Second)
	if !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "interlock migrate") {
		t.Errorf("no tables: %v; want how to make them", err)
	}
	if n := ask[int](t, s, "select count(*) from pg_namespace where nspname = 'interlock'"); n != 0 {
		t.Error("opening has made something")
	}
	for _, technique := range []string{"rows", "rowlock"} {
		_, err := enter(t, s.URL()+"&schema=public&prefix=il_&technique="+technique, time.Second)
		if !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "in schema public under prefix il_: ") || !strings.Contains(err.Error(), "interlock migrate") {
			t.Errorf("%s, no tables under a prefix: %v; want where they are missed, and how to make them", technique, err)
		}
	}
	execute(t, s, "create role locked login password 'right'")
	for url, want := range map[string]string{
		"postgres://app:1/hunter2@localhost":                          `a password written as %2F`,
		"postgres://app:1?hunter2@localhost/test":                     `a password written as %2F`,
		s.URL() + "&technique=magic":                                  `unknown technique "magic"`,
		s.URL() + "&schema=x;drop":                                    `malformed`,
		s.URL() + "&schema=A":                                         `schema "A"`,
		s.URL() + "&prefix=1x":                                        `prefix "1x"`,
		s.URL() + "&timeout=soon":                                     `parameter timeout`,
		s.URL() + "&listen=nowhere:x:y":                               `parameter listen`,
		s.URL() + "&technique=rows&technique=rows":                    `stands 2 times`,
		s.URL() + "&nonsense=1":                                       `neither a parameter of ours nor one of the client`,
		s.URL() + "&keys=number":                                      `keys "number" are of technique session`,
		s.URL() + "&Technique=rows":                                   `unknown parameter Technique of the store's URL: want technique`,
		strings.Replace(s.URL(), "disable", "require", 1):             `TLS`,
		strings.Replace(s.URL(), "/postgres?", "/nowhere?", 1):        `database "nowhere" does not exist`,
		"postgres://locked:hunter2@" + s.Addr() + "/x?sslmode=banana": `sslmode`,
	} {
		_, err := enter(t, url, time.Second)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v; want %q, and no password", driver.Redact(url), err, want)
		}
	}
	m := migrated(t)
	session := user(t, m.URL())
	for what, c := range map[string]driver.Claim{
		"an ID that is none": {Name: "a", ID: "'; drop table interlock.lock; --", Kind: driver.Mutex, Weight: 1, Limit: 1},
		"no name":            {ID: driver.NewID(), Kind: driver.Mutex, Weight: 1, Limit: 1},
		"a long name":        {Name: strings.Repeat("x", 3000), ID: driver.NewID(), Kind: driver.Mutex, Weight: 1, Limit: 1},
		"no weight":          {Name: "a", ID: driver.NewID(), Kind: driver.Mutex, Limit: 1},
	} {
		if _, err := session.Acquire(t.Context(), c); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("%s: %v; want %v", what, err, driver.ErrRefused)
		}
	}
	if n := ask[int](t, m, "select count(*) from interlock.lock"); n != 0 {
		t.Errorf("%d rows were made for what was refused", n)
	}
}

// The pool is the program's: it goes on when the driver has closed, and with nothing that was set
// for a lock.
func TestPoolOfOne(t *testing.T) {
	t.Parallel()
	s := migrated(t, "-c", "synchronous_commit=off")
	config, err := pgxpool.ParseConfig(s.URL() + "&pool_max_conns=1&default_transaction_isolation=serializable")
	if err != nil {
		t.Fatal(err)
	}
	p, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var sessions []driver.Session
	for range 2 {
		d, err := pglock.New(t.Context(), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := d.Close(context.Background()); err != nil {
				t.Error(err)
			}
			var isolation, commit, lock string
			err := p.QueryRow(context.Background(), "select current_setting('transaction_isolation'), current_setting('synchronous_commit'), current_setting('lock_timeout')").
				Scan(&isolation, &commit, &lock)
			if err != nil || isolation != "serializable" || commit != "off" || lock != "0" {
				t.Errorf("left behind: isolation %s, synchronous_commit %s, lock_timeout %s, %v; want what the program set", isolation, commit, lock, err)
			}
		}()
		session, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, session)
	}
	mine, next := mutex("one"), mutex("one")
	asks(t, sessions[0], mine, true)
	asks(t, sessions[1], next, false)
	told := make(chan driver.Grant, 1)
	go func() { told <- awaits(t, sessions[1], next) }()
	leaves(t, sessions[0], mine, true)
	<-told
	leaves(t, sessions[1], next, true)
}

// What is there and is not whole, or not ours, is said, and left as it is.
func TestMigrateRefuses(t *testing.T) {
	t.Parallel()
	s := servertest.Postgres(t)
	p := pool(t, s.URL())
	for i, c := range []struct{ first, want string }{
		{"delete from %s.version", "table version in schema %s is empty or not ours"},
		{"alter table %s.version alter version type text using 'one'", "table version in schema %s is empty or not ours"},
		{"drop function %s.shown", "schema %s lacks shown: restore what was dropped"},
		{"drop sequence %s.token; drop table %[1]s.held", "schema %s lacks token, held: restore what was dropped"},
		{"drop table %s.version", "something of that name is in schema %s, and is not ours"},
	} {
		o := &pglock.Options{Schema: fmt.Sprint("refuses", i)}
		if err := pglock.Migrate(t.Context(), p, o); err != nil {
			t.Fatal(err)
		}
		execute(t, s, fmt.Sprintf(c.first, o.Schema))
		want := fmt.Sprintf(c.want, o.Schema)
		if err := pglock.Migrate(t.Context(), p, o); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("after %q: %v; want %q", c.first, err, want)
		}
	}
}

// A role that may make no schemas makes the tables in one that is there, in a database of any
// encoding.
func TestMigrateWithoutTheRightToMakeSchemas(t *testing.T) {
	t.Parallel()
	s := servertest.Postgres(t)
	execute(t, s, "create role dev login; grant create, usage on schema public to dev")
	execute(t, s, "create database euc encoding 'EUC_JP' locale 'C' template template0")
	o := &pglock.Options{Schema: "public", Prefix: "il_"}
	dev := strings.Replace(s.URL(), "postgres@", "dev@", 1)
	if err := pglock.Migrate(t.Context(), pool(t, dev), o); err != nil {
		t.Error(err)
	}
	if err := pglock.Migrate(t.Context(), pool(t, dev), nil); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "on the database") {
		t.Errorf("a schema of its own: %v; want which right it lacks", err)
	}
	euc := strings.Replace(s.URL(), "/postgres?", "/euc?", 1)
	if err := pglock.Migrate(t.Context(), pool(t, euc), nil); err != nil {
		t.Error(err)
	}
	cycle(t, euc)
}

// Opening a session takes out those that ended long ago, and looks at a few, however many there
// are: who looked at all kept everybody else who opened waiting.
func TestOpeningSweepsAFew(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	d := newHarness(s).Driver(t)
	open := func(id string) {
		t.Helper()
		session, err := d.Open(t.Context(), driver.Spec{ID: id, TTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = session.Close(context.Background()) })
	}
	dead := func() int { return ask[int](t, s, "select count(*) from interlock.session where until = 1") }
	const rows = "select rpad(to_char(%s, 'FM0000'), 22, '0'), 'nobody', 1000, %s, '{}', '' from generate_series(1, 1000) n"
	execute(t, s, "insert into interlock.session "+fmt.Sprintf(rows, "2 * n", "1"))
	execute(t, s, "insert into interlock.session "+fmt.Sprintf(rows, "2 * n - 1", "interlock.us() + 3600000000"))
	open("0000" + strings.Repeat("0", 18))
	if n := dead(); n != 990 {
		t.Errorf("%d of 1000 dead sessions are left by an open that looks at the next twenty, half of them dead, want 990", n)
	}
	for i := range 100 {
		open(fmt.Sprintf("%04d", 20*i) + strings.Repeat("1", 18))
	}
	if n := dead(); n > 100 {
		t.Errorf("%d of 1000 dead sessions are left when sessions were opened among all of them, want a few", n)
	}
	if n := ask[int](t, s, "select count(*) from interlock.session where channel = 'nobody' and until <> 1"); n != 1000 {
		t.Errorf("%d of 1000 sessions that live are left", n)
	}
}
