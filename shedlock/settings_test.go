package shedlock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
)

// Under settings that a server may have, increments under the lock are all there.
func TestHostileSettings(t *testing.T) {
	both(t, func(t *testing.T, on opening) {
		settings := [][]string{{"-c", "default_transaction_isolation=serializable"}, {"-c", "default_transaction_isolation=repeatable read", "-c", "statement_timeout=5s", "-c", "TimeZone=Asia/Tokyo"}}
		if strings.HasSuffix(t.Name(), "mariadb") {
			settings = [][]string{
				{"--autocommit=0", "--sql-mode=ANSI,TRADITIONAL,EMPTY_STRING_IS_NULL", "--transaction-isolation=SERIALIZABLE", "--wait-timeout=5"},
				{"--sql-mode=", "--transaction-isolation=READ-COMMITTED", "--max-statement-time=5", "--innodb-flush-log-at-trx-commit=2"},
			}
		}
		for _, args := range settings {
			s := on(t, args...)
			s.must(t, "create table counter (n int)")
			s.must(t, "insert into counter values (0)")
			const clients, turns = 4, 10
			var wg sync.WaitGroup
			for range clients {
				client, err := interlock.Open(t.Context(), s.url(s.Addr()), &interlock.Options{TTL: soon})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close()
				wg.Go(func() {
					for range turns {
						if err := client.Mutex("counter").Do(t.Context(), func(ctx context.Context) error {
							var n int
							if err := s.QueryRowContext(ctx, "select n from counter").Scan(&n); err != nil {
								return err
							}
							_, err := s.ExecContext(ctx, strings.ReplaceAll("update counter set n = N", "N", micros(time.Duration(n+1)*time.Microsecond)))
							return err
						}); err != nil {
							t.Errorf("%q: %v", args, err)
						}
					}
				})
			}
			wg.Wait()
			var n int
			if err := s.QueryRowContext(t.Context(), "select n from counter").Scan(&n); err != nil || n != clients*turns {
				t.Errorf("%q: %d increments are left of %d, %v", args, n, clients*turns, err)
			}
		}
	})
}

// A clock that is set forth, or gains while nobody asks, costs a try nothing: what is free is got at once.
func TestClockIsSet(t *testing.T) {
	t.Parallel()
	for name, on := range map[string]struct {
		start func(context.Context, servertest.Options) (*servertest.Server, error)
		over  func(drivertest.T, *servertest.Server) *database
	}{
		"postgres": {servertest.StartPostgres, overPostgres},
		"mariadb":  {servertest.StartMariaDB, overMariaDB},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, err := on.start(t.Context(), servertest.Options{Clock: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = server.Close() })
			s := on.over(t, server)
			a := storetest.Entered(t, opened(t, s), time.Minute)
			for _, step := range []time.Duration{0, time.Hour, 2 * time.Hour} {
				if err := s.Step(step); err != nil {
					t.Fatal(err)
				}
				c := mutex("job")
				a.Asks(c, true)
				a.Leaves(c, true)
			}
		})
	}
}

// A row that a transaction of somebody has locked holds up no other name, though the table is small.
func TestRowsDoNotBlockEachOther(t *testing.T) {
	both(t, func(t *testing.T, on opening) {
		s := on(t)
		a, j := storetest.Entered(t, opened(t, s), time.Minute), java{t, s, "host-1"}
		if !j.locks("b", time.Minute) || !j.unlocks("b", 0) {
			t.Fatal("ShedLock cannot lock a new name")
		}
		first, last := mutex("a"), mutex("c")
		a.Asks(first, true)
		a.Asks(last, true)
		tx, err := s.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(t.Context(), "update shedlock set locked_by = 'frozen' where name = 'b'"); err != nil {
			t.Fatal(err)
		}
		a.Loses()
		a.Leaves(last, true)
		a.Asks(mutex("d"), true)
		a.Leaves(first, true)
	})
}

// A time that stands there already counts as no change: what is renewed twice within the unit of the table's times is not lost. Who
// counts by whole seconds has leases that are good for less.
func TestRenewedTwiceInASecond(t *testing.T) {
	both(t, func(t *testing.T, on opening) {
		s := on(t)
		s.must(t, strings.NewReplacer("shedlock", "coarse", "TIMESTAMP(3)", "TIMESTAMP", "TIMESTAMP NOT", "TIMESTAMP(0) NOT").Replace(map[bool]string{true: tableOfPostgres, false: tableOfMariaDB}[s.postgres]))
		a := storetest.Entered(t, opened(t, s, "table=coarse"), time.Minute)
		if valid := a.Valid(); valid > 58*time.Second {
			t.Errorf("by whole seconds a minute is good for %v", valid)
		}
		a.Asks(mutex("one"), true)
		a.Asks(mutex("two"), true)
		for range 5 {
			a.Loses()
		}
	})
}

// A request that a network held back until its caller had given up takes nothing.
func TestWhatComesLateIsVoid(t *testing.T) {
	both(t, func(t *testing.T, on opening) {
		s := on(t)
		if !(java{t, s, "host-1"}).locks("job", time.Minute) || !(java{t, s, "host-1"}).unlocks("job", 0) {
			t.Fatal("ShedLock cannot lock a new name")
		}
		w := wire.New(t, s.Addr())
		d := openedAt(t, s, w.Addr(), "timeout=3s")
		a, c := storetest.Entered(t, d, time.Minute), mutex("job")
		deliver := w.Hold(func(packet []byte) bool { return strings.Contains(string(packet), "update shedlock") })
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if g, err := a.Acquire(ctx, c); err == nil {
			t.Fatalf("an answer to what was held: %+v", g)
		}
		a.Leaves(c, false)
		before := s.arrived(t)
		if !deliver() {
			t.Fatal("nothing was held")
		}
		storetest.Until(t, "the request has arrived", func() bool { return s.arrived(t) > before })
		if s.count(t, "locked_by <> 'host-1'") != 0 {
			t.Error("a request that came late has taken the lock for nobody")
		}
	})
}

// A connection that has died without a word keeps nobody for longer than an answer may take: the request has no known outcome, the next one
// goes over another connection, and what was held still is.
func TestHalfOpenConnections(t *testing.T) {
	both(t, func(t *testing.T, on opening) {
		s := on(t)
		w := wire.New(t, s.Addr())
		a := storetest.Entered(t, openedAt(t, s, w.Addr(), "timeout=400ms"), time.Hour)
		is := func(statement string) func([]byte) bool {
			return func(packet []byte) bool { return strings.Contains(string(packet), statement) }
		}
		mine, next := mutex("mine"), mutex("next")
		storetest.Until(t, "a lock is held", func() bool { g, err := a.Acquire(t.Context(), mine); return err == nil && g.Held })
		for what, ask := range map[string]func() error{
			"set lock_until": func() error { _, err := a.Renew(t.Context()); return err },
			"set locked_at":  func() error { _, err := a.Acquire(t.Context(), next); return err },
		} {
			silenced := w.Silence(is(what))
			var err error
			storetest.Until(t, "a connection is silent", func() bool {
				err = ask()
				select {
				case <-silenced:
					return true
				default:
					return false
				}
			})
			if err == nil || errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused) || errors.Is(err, driver.ErrSessionLost) {
				t.Errorf("%q without an answer: %v; want an error that says nothing of what was done", what, err)
			}
			storetest.Until(t, "another connection answers", func() bool { return ask() == nil })
		}
		for _, c := range []driver.Claim{mine, next} {
			if s.count(t, "name = '"+c.Name+"' and lock_until > NOW and locked_by like 'interlock:"+c.ID+" %'") != 1 {
				t.Errorf("%s is not held any more", c.Name)
			}
			storetest.Until(t, c.Name+" is left", func() bool { _, err := a.Release(t.Context(), c); return err == nil })
		}
	})
}

// arrived grows when the server has carried out an update, or where it does not tell has seen the end of a connection of ours.
func (s *database) arrived(t *testing.T) (n int) {
	t.Helper()
	statement := "select variable_value from information_schema.global_status where variable_name = 'com_update'"
	if s.postgres {
		statement = "select -count(*) from pg_stat_activity where application_name = 'interlock'"
	}
	if err := s.QueryRowContext(t.Context(), statement).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
