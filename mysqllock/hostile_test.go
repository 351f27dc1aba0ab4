package mysqllock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/mysqllock"
)

// Whatever is set for a whole server, the tables are made, and locks are kept, by connections that
// find it so from the beginning.
func TestHostileServers(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"--sql-mode=STRICT_ALL_TABLES,NO_ZERO_DATE", "--sql-mode=ANSI,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH", "--sql-mode=ORACLE", "--autocommit=0",
		"--wait-timeout=1 --autocommit=0", "--max-statement-time=0.5", "--innodb-flush-log-at-trx-commit=2",
		"--transaction-isolation=REPEATABLE-READ", "--transaction-isolation=SERIALIZABLE", "--transaction-isolation=READ-UNCOMMITTED",
		"--innodb-rollback-on-timeout=1 --innodb-lock-wait-timeout=1", "--character-set-server=latin1 --collation-server=latin1_german2_ci", "--lower-case-table-names=1",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			s := migrated(t, strings.Fields(args)...)
			a, b, mine := user(t, s.URL()), user(t, s.URL()), mutex("idle")
			asks(t, a, mine, true)
			if strings.Contains(args, "wait-timeout=1 ") {
				theirs := ask[string](t, s, "select group_concat(id) from information_schema.processlist where user = 'root' and id <> connection_id()")
				until(t, "the server has ended what is idle, but for the two that have gates", func() bool {
					return ask[int](t, s, "select count(*) from information_schema.processlist where id in ("+theirs+")") == 2
				})
			}
			leaves(t, a, mine, true)
			cycle(t, a, b)
		})
	}
}

// A server that has no connection left says so to whoever asks. It loses nothing, and when it has
// some again all goes on.
func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	execute(t, s, "create user app with max_user_connections 2", "grant all on test.* to app")
	url := strings.Replace(s.URL(), "root@", "app@", 1)
	a, b, mine, next := user(t, s.URL()), user(t, url), mutex("full"), mutex("full")
	asks(t, a, mine, true)
	if _, err := b.Acquire(t.Context(), next); err != nil { // over the one that it has beside that of its gates
		t.Error(err)
	}
	becomes(t, s, waiting, 1)
	if r, err := b.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
		t.Errorf("Renew, when the other one waits behind a gate: %+v, %v", r, err)
	}
	if _, err := enter(t, url, time.Minute); !errors.Is(err, driver.ErrNotSent) || !strings.Contains(err.Error(), "max_user_connections") {
		t.Errorf("one more client: %v; want that there are too many connections", err)
	}
	leaves(t, a, mine, true)
	awaits(t, b, next)
	leaves(t, b, next, true)
	execute(t, s, "alter user app with max_user_connections 0")
	cycle(t, a, user(t, url))
}

// Who lacks a right is told which, and has changed nothing; nor has who names what cannot be.
func TestRefusalsChangeNothing(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	execute(t, s, "create user app identified by 'secret-1'")
	url := strings.Replace(s.URL(), "root@", "app:secret-1@", 1)
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, driver.ErrRefused) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v; want that it is refused, and no password", what, err)
		}
	}
	for _, grant := range []string{
		"", "select on test.interlock_version", "execute on test.*", "select, insert, update on test.interlock_lock",
	} {
		if grant != "" {
			execute(t, s, "grant "+grant+" to app")
		}
		_, err := enter(t, url, time.Minute)
		refused("with "+grant, err)
		if strings.HasPrefix(grant, "select on") || grant == "execute on test.*" {
			if !strings.Contains(err.Error(), "the user needs") {
				t.Errorf("with %s: %v; want what the user needs", grant, err)
			}
		}
	}
	for _, url := range []string{url + "?technique=session", url + "?technique=rowlock"} {
		_, err := enter(t, url, time.Minute)
		refused(url, err)
		if err != nil && !strings.Contains(err.Error(), "UPDATE and DELETE of interlock_token") {
			t.Errorf("%s, with the rights that rows need: %v; want what this technique needs", url, err)
		}
	}
	refused("migrate", mysqllock.Migrate(t.Context(), pool(t, url), &mysqllock.Options{Prefix: "more_"}))
	execute(t, s, "grant select, insert, update, delete on test.interlock_session to app")
	a := user(t, url)
	for what, change := range map[string]func(*driver.Claim){
		"no name": func(c *driver.Claim) { c.Name = "" }, "a long name": func(c *driver.Claim) { c.Name = strings.Repeat("x", 1025) },
		"an ID that is SQL": func(c *driver.Claim) { c.ID = "' or 1 = 1 --" }, "no weight": func(c *driver.Claim) { c.Kind, c.Weight, c.Limit = driver.Permit, 0, 2 },
	} {
		c := mutex("refused")
		change(&c)
		_, err := a.Acquire(t.Context(), c)
		refused(what, err)
	}
	if n := ask[int](t, s, "select (select count(*) from interlock_lock) * 10 + (select count(*) from interlock_session)"); n != 1 {
		t.Errorf("%d rows were written, want that of a session", n)
	}
}
