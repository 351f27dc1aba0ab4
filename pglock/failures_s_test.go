package pglock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
	"github.com/interlock-go/interlock/pglock"
)

// clocked starts a server with the tables whose clock can be stepped.
func clocked(t *testing.T) *servertest.Server {
	t.Helper()
	s, err := servertest.StartPostgres(t.Context(), servertest.Options{Clock: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := pglock.Migrate(t.Context(), pool(t, s.URL()), nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// Four connections serve fifty who wait, since none is kept for one who waits or holds.
func TestS02_NoConnectionIsKept(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	config, err := pgxpool.ParseConfig(s.URL() + "&pool_max_conns=4")
	if err != nil {
		t.Fatal(err)
	}
	p, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	d, err := pglock.New(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	session, err := storetest.Session(t, d, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	storetest.FiftyWait(t, session, func() int { return int(p.Stat().AcquiredConns()) })
}

// A Release says what the store says: an operator took the claim away.
func TestS03_ReleaseSaysWhatTheStoreSays(t *testing.T) {
	t.Parallel()
	storetest.TakenAway(t, migrated(t).URL())
}

// Who hands over does so to the first who lives. Nobody of those who wait has looked meanwhile.
func TestS04_TheDeadAreNotLetIn(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for _, requeue := range []bool{false, true} {
		a, b, c := user(t, s.URL()), user(t, s.URL()), user(t, s.URL())
		mine, dead, next := mutex("heir"), mutex("heir"), mutex("heir")
		asks(t, a, mine, true)
		asks(t, b, dead, false)
		asks(t, c, next, false)
		execute(t, s, fmt.Sprintf("update interlock.session s set until = 0 from interlock.lock l, unnest(l.line) c where c.id = '%s' and s.id = c.session", dead.ID))
		if requeue {
			if _, _, err := a.(driver.Requeuer).Requeue(t.Context(), mine, mutex("heir")); err != nil {
				t.Fatal(err)
			}
		} else {
			leaves(t, a, mine, true)
		}
		if first := ask[string](t, s, "select (line[1]).id from interlock.lock where (line[1]).held"); first != next.ID {
			t.Errorf("requeue %v: one was let in whose session was over", requeue)
		}
		execute(t, s, "delete from interlock.lock")
	}
}

func TestS04_TheHolderIsCutOff(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	storetest.CutOff(t, s, s.URL(), func() { execute(t, s, "update interlock.session set until = interlock.us() + 300000") })
}

// A session that is renewed in the moment in which somebody finds its time over lives on: what was
// read before its row was locked counts for nothing.
func TestS04_DeathIsDeclaredUnderTheLock(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	id := driver.NewID()
	d, err := driver.OpenURL(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	a, err := d.Open(t.Context(), driver.Spec{ID: id, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	b := user(t, s.URL())
	mine := mutex("renewed")
	asks(t, a, mine, true)
	p := pool(t, s.URL())
	if _, err := p.Exec(t.Context(), "update interlock.session set until = interlock.us() - 1000 where id = $1", id); err != nil {
		t.Fatal(err)
	}
	tx, err := p.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), "update interlock.session set until = interlock.us() + ttl where id = $1", id); err != nil {
		t.Fatal(err)
	}
	if g, err := b.Acquire(t.Context(), tries("renewed")); err != nil || g.Held {
		t.Fatalf("taken from a session that is being renewed: held %v, %v", g.Held, err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	leaves(t, a, mine, true)
}

func TestS05_NamesAreWhole(t *testing.T) {
	t.Parallel()
	storetest.NamesAreWhole(t, user(t, migrated(t).URL()))
}

// Who gives up waiting in the moment in which the lock is handed over leaves nothing behind.
func TestS06_AWaitThatIsGivenUp(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	givesUp(t, s, s.URL(), "select sum(cardinality(line)) from interlock.lock")
}

// givesUp counts by a query what remains.
func givesUp(t *testing.T, s *servertest.Server, url, remains string) {
	t.Helper()
	looks := connect(t, s)
	defer looks.Close(context.Background())
	storetest.GivesUp(t, url, "given up", 150, 20*time.Microsecond, func() (n int) {
		if err := looks.QueryRow(t.Context(), remains).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	})
}

// A server that ends connections for being idle ends no lock: those of the pool are made anew, and
// that which listens is exempt.
func TestS07_IdleConnectionsAreEnded(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	// Only what the drivers connect is ended, and only when it has been idle for so long that a
	// request which the machine holds up seldom meets that; the driver sends it again then.
	url := s.URL() + "&options=-c%20idle_session_timeout%3D500ms"
	a, b := user(t, url), user(t, url)
	mine, next := mutex("idle"), mutex("idle")
	asks(t, a, mine, true)
	asks(t, b, next, false)
	told := make(chan driver.Grant, 1)
	go func() { told <- awaits(t, b, next) }()
	until(t, "the connections of the pools are ended", func() bool {
		return ask[int](t, s, "select count(*) from pg_stat_activity where application_name = 'interlock' and query not like '%listen%'") == 0
	})
	if n := ask[int](t, s, "select count(*) from pg_stat_activity where application_name = 'interlock'"); n != 1 {
		t.Errorf("%d connections listen, want 1", n)
	}
	leaves(t, a, mine, true)
	<-told
	leaves(t, b, next, true)
}

// Backends are terminated and the server is restarted while a lock is held and waited for: nobody
// loses anything. When the session is ended in the database, the holder is told.
func TestS08_ConnectionsAreLost(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for what, harm := range map[string]func(){
		"backends terminated": func() {
			execute(t, s, "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'interlock'")
		},
		"restart": func() {
			if err := s.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"crash": func() {
			if err := errors.Join(s.Kill(), s.Restart(t.Context())); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			a, b := user(t, s.URL()), user(t, s.URL())
			mine, next := mutex(what), mutex(what)
			asks(t, a, mine, true)
			asks(t, b, next, false)
			told := make(chan driver.Grant, 1)
			go func() { told <- awaits(t, b, next) }()
			until(t, "somebody listens", func() bool {
				return ask[int](t, s, "select count(*) from pg_stat_activity where application_name = 'interlock' and query like '%listen%'") == 1
			})
			harm()
			for _, session := range []driver.Session{a, b} {
				until(t, what+", and renewed", func() bool {
					r, err := session.Renew(t.Context())
					if len(r.Lost) > 0 || errors.Is(err, driver.ErrSessionLost) {
						t.Fatalf("%s: lost %d, %v", what, len(r.Lost), err)
					}
					return err == nil
				})
			}
			leaves(t, a, mine, true)
			<-told
			leaves(t, b, next, true)
		})
	}
	a, mine := user(t, s.URL()), mutex("ended")
	asks(t, a, mine, true)
	execute(t, s, "select interlock.finish(id) from interlock.session")
	if r, err := a.Renew(t.Context()); !errors.Is(err, driver.ErrSessionLost) {
		t.Fatalf("the session was ended in the database, and its holder is not told: lost %d, %v", len(r.Lost), err)
	}
	if _, err := a.Acquire(t.Context(), mine); !errors.Is(err, driver.ErrSessionLost) {
		t.Errorf("Acquire: %v; want %v", err, driver.ErrSessionLost)
	}
}
