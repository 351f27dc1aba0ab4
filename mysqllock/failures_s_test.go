package mysqllock_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
	"github.com/interlock-go/interlock/mysqllock"
)

// now is the time as the tables have it.
const now = "timestampdiff(microsecond, '1970-01-01', utc_timestamp(6))"

// Four connections serve fifty who wait, since none is kept for one who waits or holds.
func TestS02_NoConnectionIsKept(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	db := pool(t, s.URL())
	db.SetMaxOpenConns(4)
	d, err := mysqllock.New(t.Context(), db, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := session(t, d, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	storetest.FiftyWait(t, a, func() int { return db.Stats().InUse })
}

// A Release says what the store says: an operator took the claim away.
func TestS03_ReleaseSaysWhatTheStoreSays(t *testing.T) {
	t.Parallel()
	storetest.TakenAway(t, migrated(t).URL())
}

func TestS04_TheHolderIsCutOff(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	storetest.CutOff(t, s, s.URL(), func() { execute(t, s, "update interlock_session set valid_until = "+now+" + 300000") })
}

func TestS05_NamesAreWhole(t *testing.T) {
	t.Parallel()
	storetest.NamesAreWhole(t, user(t, migrated(t).URL()))
}

// Who gives up waiting in the moment in which the lock is handed over leaves nothing behind.
func TestS06_AWaitThatIsGivenUp(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	remains := byHand(t, s)
	storetest.GivesUp(t, s.URL(), "given up", 100, 50*time.Microsecond, func() int { return remains("select count(*) from interlock_lock where line <> ''") })
}

// kill ends all connections but that which does it.
func kill(t *testing.T, s *servertest.Server) {
	t.Helper()
	db := pool(t, s.URL())
	db.SetMaxOpenConns(1)
	var ids string
	if err := db.QueryRowContext(t.Context(), "select coalesce(group_concat(id), '') from information_schema.processlist where id <> connection_id() and user = 'root'").Scan(&ids); err != nil {
		t.Fatal(err)
	}
	for id := range strings.SplitSeq(ids, ",") {
		_, _ = db.ExecContext(t.Context(), "kill "+id) // it may have ended by itself
	}
}

// Connections that are ended, idle or not, a restart and a crash end no lock; and when the session
// was ended in the database, the holder is told.
func TestS07S08_ConnectionsAreLost(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	a, b := user(t, s.URL()), user(t, s.URL())
	for what, harm := range map[string]func(){
		"killed":  func() { kill(t, s) },
		"restart": func() { _ = s.Restart(t.Context()) },
		"crash":   func() { _, _ = s.Kill(), s.Restart(t.Context()) },
	} {
		mine, next := mutex(what), mutex(what)
		asks(t, a, mine, true)
		asks(t, b, next, false)
		harm()
		leaves(t, a, mine, true)
		awaits(t, b, next)
		leaves(t, b, next, true)
	}
	mine := mutex("ended")
	asks(t, a, mine, true)
	execute(t, s, "call interlock_finish((select substr(line, 24, 22) from interlock_lock where name = 'ended'), null)")
	if r, err := a.Renew(t.Context()); !errors.Is(err, driver.ErrSessionLost) {
		t.Fatalf("the session was ended in the database, and its holder is not told: lost %d, %v", len(r.Lost), err)
	}
}

// Names that nobody has used are taken by many at once without an error.
func TestS12_NewNamesAtOnce(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	users := make([]driver.Session, 8)
	for i := range users {
		users[i] = user(t, s.URL())
	}
	for i := range 50 {
		var all sync.WaitGroup
		start := make(chan struct{})
		for _, u := range users {
			all.Go(func() {
				<-start
				if _, err := u.Acquire(t.Context(), tries(fmt.Sprint("new/", i))); err != nil {
					t.Errorf("a new name: %v", err)
				}
			})
		}
		close(start)
		all.Wait()
	}
}

// Tokens grow over releases, crashes and a clock that is set back.
func TestS16S17_TokensGrow(t *testing.T) {
	t.Parallel()
	s, err := servertest.StartMariaDB(t.Context(), servertest.Options{Clock: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := mysqllock.Migrate(t.Context(), pool(t, s.URL()), nil); err != nil {
		t.Fatal(err)
	}
	var last uint64
	grows := func(what string) {
		t.Helper()
		a := user(t, s.URL())
		for range 3 {
			c := mutex("tokens")
			g := asks(t, a, c, true)
			leaves(t, a, c, true)
			if g.Fence <= last {
				t.Errorf("token %d after %d, %s", g.Fence, last, what)
			}
			last = g.Fence + driver.Stride - 1
		}
	}
	grows("at first")
	if err := s.Step(-time.Hour); err != nil {
		t.Fatal(err)
	}
	grows("after the database's clock was set back")
	if err := errors.Join(s.Kill(), s.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
	grows("after a crash")
}

// A claim that waits looks by itself. That renews nothing: what else its session has goes when
// nobody renews it.
func TestWaitRenewsNothing(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	d, err := mysqllock.New(t.Context(), pool(t, s.URL()), nil)
	if err != nil {
		t.Fatal(err)
	}
	a, b := user(t, s.URL()), on(t, d)
	mine, next := mutex("looked at"), mutex("looked at")
	asks(t, a, mine, true)
	asks(t, b, next, false)
	// The holder's time is over, and that of who waits is half over.
	execute(t, s, fmt.Sprintf("update interlock_session s set valid_until = if(locate(concat(' ', s.id, ' 2'), (select line from interlock_lock)) > 0, 0, %s + ttl div 2)", now))
	const until = "select max(valid_until) from interlock_session"
	before := ask[int64](t, s, until)
	awaits(t, b, next)
	if after := ask[int64](t, s, until); after != before {
		t.Errorf("the session was renewed by a claim that only waited, for %d µs more", after-before)
	}
}
