package mysqllock_test

import (
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/mysqllock"
)

// dials opens a driver that dials for itself.
func dials(t *testing.T, s *servertest.Server, o *mysqllock.Options) driver.Driver {
	t.Helper()
	c, _, err := mysqllock.ParseURL(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	d, err := mysqllock.NewConnector(t.Context(), connector, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func on(t *testing.T, d driver.Driver) driver.Session {
	t.Helper()
	s, err := session(t, d, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// becomes waits until a query of the superuser answers n or more.
func becomes(t *testing.T, s *servertest.Server, query string, n int) {
	t.Helper()
	db := pool(t, s.URL())
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		var got int
		if err := db.QueryRowContext(t.Context(), query).Scan(&got); err != nil || time.Now().After(end) {
			t.Fatalf("%s: %d after 30 s, %v; want %d", query, got, err, n)
		}
		if got >= n {
			return
		}
	}
}

// waiting counts those who wait behind gates, rowWaits those who wait for rows, and locked the
// gates that are.
const (
	waiting  = "select count(*) from information_schema.processlist where state = 'User lock'"
	rowWaits = "select variable_value from information_schema.global_status where variable_name = 'innodb_row_lock_current_waits'"
	locked   = "select count(is_used_lock(concat('interlock ', substr(line, 124, 22)))) from interlock_lock"
)

// Who may dial is told of exclusive locks; who brings a pool asks.
func TestWhoIsTold(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	if told := dials(t, s, nil).Traits().Events; told != driver.KindsOf(driver.Mutex, driver.Write) {
		t.Errorf("over connections of its own, Events are %v", told)
	}
	d, err := mysqllock.New(t.Context(), pool(t, s.URL()), nil)
	if err != nil {
		t.Fatal(err)
	}
	if told := d.Traits().Events; told != 0 {
		t.Errorf("over a pool, Events are %v, want none", told)
	}
}

// patient has waits behind gates not look at the line each second.
func patient(t *testing.T, s *servertest.Server) {
	t.Helper()
	schema, err := mysqllock.Schema(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, look, _ := strings.Cut(schema, "create procedure interlock_look(")
	look, _, _ = strings.Cut(look, "//")
	execute(t, s, "drop procedure interlock_look", "create procedure interlock_look("+strings.Replace(look, "p_gate), 1)", "p_gate), 1000)", 1))
}

// A claim that waits behind a gate is woken by its opening alone, whose claims never look by
// themselves here, and in the order of the line.
func TestGatesOpenInOrder(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	patient(t, s)
	const n = 6
	users, claims := make([]driver.Session, n), make([]driver.Claim, n)
	for i := range users {
		users[i], claims[i] = on(t, dials(t, s, nil)), mutex("order")
		asks(t, users[i], claims[i], i == 0)
	}
	becomes(t, s, waiting, n-1)
	var last uint64
	for i, u := range users {
		if g := awaits(t, u, claims[i]); g.Fence <= last {
			t.Errorf("token %d after %d", g.Fence, last)
		} else {
			last = g.Fence
		}
		if n := ask[int](t, s, waiting); n != len(users)-1-i {
			t.Errorf("%d wait behind gates when %d of %d hold or have held; want that one was woken at a time", n, i+1, len(users))
		}
		leaves(t, u, claims[i], true)
	}
}

// Who waits behind a gate locks nothing that the one before it needs to leave, also without
// autocommit.
func TestWhoWaitsLocksNothing(t *testing.T) {
	t.Parallel()
	s := migrated(t, "--autocommit=0")
	patient(t, s)
	a, b, mine := on(t, dials(t, s, nil)), on(t, dials(t, s, nil)), mutex("light")
	asks(t, a, mine, true)
	next := mutex("light")
	asks(t, b, next, false)
	becomes(t, s, waiting, 1)
	if n := ask[int](t, s, "select coalesce(sum(trx_rows_locked), 0) from information_schema.innodb_trx"); n != 0 {
		t.Errorf("who waits behind a gate has locked %d rows", n)
	}
	leaves(t, a, mine, true)
	awaits(t, b, next)
}

// However many ask at once, a driver has few connections, and the server has some for others.
func TestConnectionsAreFew(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	const n = 50
	d := dials(t, s, nil)
	users := make([]driver.Session, n)
	for i := range users {
		users[i] = on(t, d)
	}
	asks(t, users[0], mutex("many"), true)
	tx := begins(t, pool(t, s.URL()), sql.LevelReadCommitted)
	inTx(t, tx, "select * from interlock_lock for update")
	var all sync.WaitGroup
	for _, u := range users[1:] {
		all.Go(func() { asks(t, u, mutex("many"), false) })
	}
	becomes(t, s, rowWaits, 16)
	_ = tx.Rollback()
	all.Wait()
	if most := ask[int](t, s, "select variable_value from information_schema.global_status where variable_name = 'max_used_connections'"); most > 40 {
		t.Errorf("%d connections for %d who ask at once, want 25 and those of this test", most, n)
	}
}

// A gate whose connection the server ends, idle or not, is locked again by the next renewal, and
// who waited behind it is told.
func TestGatesAreLockedAgain(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	a, b := on(t, dials(t, s, nil)), on(t, dials(t, s, nil))
	mine, next := mutex("closed"), mutex("closed")
	asks(t, a, mine, true)
	asks(t, b, next, false)
	becomes(t, s, waiting, 1)
	kill(t, s)
	for _, u := range []driver.Session{a, b} {
		if r, err := u.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
			t.Fatalf("Renew: %+v, %v", r, err)
		}
	}
	becomes(t, s, locked, 1)
	var woken sync.WaitGroup
	woken.Go(func() { awaits(t, b, next) })
	becomes(t, s, waiting, 1)
	leaves(t, a, mine, true)
	woken.Wait()
	leaves(t, b, next, true)
}

// A wait that the server cuts short means to wait on.
func TestWaitsAreCutShort(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	execute(t, s, "set global max_statement_time = 0.1")
	a, b := on(t, dials(t, s, nil)), on(t, dials(t, s, nil))
	mine, next := mutex("short"), mutex("short")
	asks(t, a, mine, true)
	asks(t, b, next, false)
	var woken sync.WaitGroup
	woken.Go(func() { awaits(t, b, next) })
	becomes(t, s, "select variable_value from information_schema.global_status where variable_name = 'max_statement_time_exceeded'", 3)
	leaves(t, a, mine, true)
	woken.Wait()
	leaves(t, b, next, true)
}

// More claims than may wait on a connection each are let in all the same.
func TestMoreThanMayWait(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	a, b := on(t, dials(t, s, nil)), on(t, dials(t, s, &mysqllock.Options{MaxWaiting: 1}))
	var mine, next [3]driver.Claim
	for i, name := range []string{"first", "second", "third"} {
		mine[i], next[i] = mutex(name), mutex(name)
		asks(t, a, mine[i], true)
		asks(t, b, next[i], false)
	}
	becomes(t, s, waiting, 1)
	var woken sync.WaitGroup
	for _, c := range next {
		woken.Go(func() { awaits(t, b, c) })
	}
	for _, c := range mine {
		leaves(t, a, c, true)
	}
	woken.Wait()
}

// Whoever takes away a claim has not its gate, which stays locked, and whoever waits there sees it
// all the same.
func TestClaimsTakenAwayByHand(t *testing.T) {
	t.Parallel()
	for how, settings := range map[string][]string{"break": nil, "finish": {"--autocommit=0", "--transaction-isolation=SERIALIZABLE"}} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := migrated(t, settings...)
			d, id := dials(t, s, nil), driver.NewID()
			b, c := on(t, d), on(t, dials(t, s, nil))
			a, err := d.Open(t.Context(), driver.Spec{ID: id, TTL: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			mine, next, last := mutex("taken"), mutex("taken"), mutex("taken")
			g := asks(t, a, mine, true)
			asks(t, b, next, false)
			asks(t, c, last, false)
			becomes(t, s, waiting, 2)
			if how == "break" {
				execute(t, s, fmt.Sprintf("call interlock_break('taken', '%s', %d, true)", driver.PublicID(mine.ID), g.Fence))
			} else {
				execute(t, s, "call interlock_finish('"+id+"', null)")
			}
			awaits(t, b, next)
			becomes(t, s, waiting, 1)
			execute(t, s, "alter table interlock_lock comment 'nobody has it open who waits'")
			leaves(t, b, next, true)
			awaits(t, c, last)
			leaves(t, c, last, true)
		})
	}
}
