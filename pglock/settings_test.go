package pglock_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// What an administrator may set does not break locks, or is said.
func TestSettings(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for _, setting := range []string{
		"default_transaction_isolation = 'serializable'", "statement_timeout = '500ms'", "synchronous_commit = 'off'",
		"idle_in_transaction_session_timeout = '100ms'", "standard_conforming_strings = off", "bytea_output = 'escape'",
		"search_path = ''", "DateStyle = 'German'", "IntervalStyle = 'iso_8601'", "extra_float_digits = 0", "lock_timeout = '50ms'",
	} {
		execute(t, s, "alter role postgres set "+setting)
		cycle(t, s.URL())
		if !strings.HasPrefix(setting, "default_transaction_isolation") {
			execute(t, s, "alter role postgres reset "+strings.Fields(setting)[0])
		}
	}
	execute(t, s, "alter role postgres set default_transaction_read_only = on")
	session, err := enter(t, s.URL(), time.Minute)
	if err == nil {
		_, err = session.Acquire(t.Context(), mutex("read-only"))
	}
	if !errors.Is(err, driver.ErrUnable) || !errors.Is(err, driver.ErrNotSent) || !strings.Contains(err.Error(), "the default of the database or the role is read-only") {
		t.Errorf("a default of read-only: %v; want that it is said", err)
	}
}

// Where the default is SERIALIZABLE our statements are not: none of those that contend for a row is rolled back for having read
// before it got the row.
func TestSerializableByDefault(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	execute(t, s, "alter role postgres set default_transaction_isolation = 'serializable'")
	rollbacks := "select xact_rollback::int from pg_stat_database where datname = 'postgres'"
	before := ask[int](t, s, rollbacks)
	var all sync.WaitGroup
	for range 4 {
		d, err := driver.OpenURL(t.Context(), s.URL())
		if err != nil {
			t.Fatal(err)
		}
		session, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			for range 40 {
				c := mutex("contended")
				if g, err := session.Acquire(t.Context(), c); err != nil || !g.Held {
					awaits(t, session, c)
				}
				leaves(t, session, c, true)
			}
			if err := d.Close(t.Context()); err != nil { // what its connections count is told when they end
				t.Error(err)
			}
		})
	}
	all.Wait()
	until(t, "the connections are ended", func() bool {
		return ask[int](t, s, "select count(*) from pg_stat_activity where application_name = 'interlock'") == 0
	})
	if n := ask[int](t, s, rollbacks) - before; n != 0 {
		t.Errorf("%d statements were rolled back, want none", n)
	}
}
