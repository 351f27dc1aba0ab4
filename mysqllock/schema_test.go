package mysqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
)

// one returns the only connection of a pool.
func one(t *testing.T, db *sql.DB) *sql.DB {
	t.Helper()
	db.SetMaxOpenConns(1)
	return db
}

func mutex(name string) driver.Claim {
	return driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Queue: true}
}

// step is what turn is called with.
func step(s *client, c driver.Claim, deadline time.Time, patience int) string {
	return fmt.Sprintf("call interlock_turn(x'%x', '%s', null, '%s', 0, 1, %d, %d, %d, 0, '', %d, %d, repeat('.', 22), null)", c.Name, s.id, c.ID, c.Kind, c.Weight, c.Limit, deadline.UnixMicro(), patience)
}

func far() time.Time { return time.Now().Add(time.Hour) }

// locks has a transaction of somebody else's lock a row, until the returned function is called.
func locks(t *testing.T, db *sql.DB, query string) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	if _, err := tx.ExecContext(t.Context(), query); err != nil {
		t.Fatal(err)
	}
	return tx
}

// awaits returns when so many statements wait for a row.
func awaits(t *testing.T, db *sql.DB, n int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; {
		var now int
		if err := db.QueryRowContext(t.Context(), "select variable_value from information_schema.global_status where variable_name = 'innodb_row_lock_current_waits'").Scan(&now); err != nil {
			t.Fatal(err)
		}
		if now == n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d statements wait, want %d", now, n)
		}
	}
}

// A step that waited in vain is rolled back, and its connection is as it was.
func TestPatienceOfAStep(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	root, db := pool(t, s, nil), one(t, pool(t, s, map[string]string{"innodb_lock_wait_timeout": "47"}))
	a := opens(t, db)
	c := mutex("busy")
	a.turn(c.Name, nil, &c)
	a.turn(c.Name, &c, nil)
	tx := locks(t, root, "select * from interlock_lock for update")
	if _, err := asks(t.Context(), db, step(a, c, far(), 1)); code(err) != 1205 {
		t.Errorf("a step got %v while somebody else had the row; want error 1205", err)
	}
	got, err := asks(t.Context(), db, "select @@innodb_lock_wait_timeout, @@in_transaction")
	if err != nil || strings.Join(got[0], " ") != "47 0" {
		t.Errorf("the connection is left with %v, %v", got, err)
	}
	_ = tx.Rollback()
	if g := a.turn(c.Name, nil, &c); !g.Held {
		t.Errorf("the lock is free and not had: %+v", g)
	}
}

// A request that has waited beyond its deadline does nothing.
func TestAStepThatIsLateIsVoid(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	root, db := pool(t, s, nil), pool(t, s, nil)
	a := opens(t, db)
	c := mutex("busy")
	a.turn(c.Name, nil, &c)
	a.turn(c.Name, &c, nil)
	tx := locks(t, root, "select * from interlock_lock for update")
	answers := make(chan string, 1)
	deadline := time.Now().Add(100 * time.Millisecond)
	go func() {
		rows, err := asks(t.Context(), db, step(a, c, deadline, 30))
		answers <- fmt.Sprint(rows, err)
	}()
	awaits(t, root, 1)
	<-time.After(time.Until(deadline))
	_ = tx.Rollback()
	if got := <-answers; !strings.HasPrefix(got, "[[7 f ") {
		t.Errorf("a step after its deadline answers %s; want that it is void", got)
	}
	if l := shown(t, root, c.Name); len(l.Claims) != 0 {
		t.Errorf("it has put %+v there", l.Claims)
	}
}

// A transaction that the user left open on a connection is neither committed nor rolled back.
func TestAStepInsideATransactionIsRefused(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	root, db := pool(t, s, nil), one(t, pool(t, s, nil))
	a := opens(t, db)
	execute(t, root, "create table mine (n int) engine = innodb")
	execute(t, db, "start transaction")
	execute(t, db, "insert into mine values (1)")
	for _, statement := range []string{
		step(a, mutex("x"), far(), 5), "call interlock_renew('" + a.id + "', '', 5)", "call interlock_finish('" + a.id + "', null)",
		"call interlock_look('x', 'y', 'z', null)", "call interlock_show('', 0)", "call interlock_break('x', 'y', 0, 0)", "call interlock_open('z', 1, '')",
	} {
		if _, err := asks(t.Context(), db, statement); code(err) != 1568 {
			t.Errorf("%s: %v; want error 1568", statement, err)
		}
	}
	execute(t, db, "commit")
	var n int
	if err := root.QueryRowContext(t.Context(), "select count(*) from mine").Scan(&n); err != nil || n != 1 {
		t.Errorf("the user's transaction has %d rows, %v; want 1", n, err)
	}
}

// What somebody sees whose session is over is looked at again under the lock of its row: a renewal
// that is under way keeps it alive.
func TestRenewalWinsAgainstWhoSawItOver(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	root, db := pool(t, s, nil), pool(t, s, nil)
	a, b := opens(t, db), opens(t, db)
	mine, other := mutex("x"), mutex("x")
	if g := a.turn("x", nil, &mine); !g.Held {
		t.Fatalf("%+v", g)
	}
	execute(t, root, "update interlock_session set valid_until = 1 where id = ?", a.id)
	tx := locks(t, root, "select * from interlock_session where id = '"+a.id+"' for update") // a renewal
	if g := b.turn("x", nil, &other); g.Held || g.state != 1 {
		t.Errorf("held by somebody else while a renewal is under way: %+v", g)
	}
	if _, err := tx.ExecContext(t.Context(), "update interlock_session set valid_until = ? where id = ?", far().UnixMicro(), a.id); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if g := b.turn("x", nil, &other); g.Held {
		t.Errorf("held by somebody else after a renewal: %+v", g)
	}
	if lost, alive := a.renew(); !alive || len(lost) > 0 {
		t.Errorf("after a renewal it is alive: %v, lost %v", alive, lost)
	}
	execute(t, root, "update interlock_session set valid_until = 1 where id = ?", a.id)
	if g := b.turn("x", nil, &other); !g.Held {
		t.Errorf("not held when the holder's session is over: %+v", g)
	}
}

// New names and old ones, by many connections at once: no deadlock, one holder, tokens in order.
func TestManyConnections(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"REPEATABLE-READ", "SERIALIZABLE"} {
		s := migrated(t)
		db := pool(t, s, map[string]string{"tx_isolation": "'" + level + "'"})
		var all sync.WaitGroup
		var mu sync.Mutex
		last, held := map[string]uint64{}, map[string]int{}
		for range 8 {
			a := opens(t, db)
			all.Go(func() {
				for i := range 60 {
					c := mutex([]string{"hot", "new/" + strconv.Itoa(i), "warm/" + strconv.Itoa(i%3)}[i%3])
					c.Queue = false
					var rows [][]string
					err := errors.New("never")
					for end := time.Now().Add(30 * time.Second); err != nil && time.Now().Before(end); {
						rows, err = asks(t.Context(), db, strings.Replace(step(a, c, far(), 30), ", 0, 1, 1,", ", 0, 0, 1,", 1))
						if code(err) == 1213 {
							t.Errorf("%s: %v", level, err)
						}
						if err == nil && rows[0][0][0] != '2' {
							err = errors.New("not free")
						}
					}
					if err != nil {
						t.Errorf("%s: %v", c.Name, err)
						return
					}
					fence, _ := strconv.ParseUint(strings.Fields(rows[0][0])[2], 10, 64)
					mu.Lock()
					held[c.Name]++
					if held[c.Name] != 1 || fence < last[c.Name]+driver.Stride {
						t.Errorf("%s: %d hold; token %d after %d", c.Name, held[c.Name], fence, last[c.Name])
					}
					last[c.Name] = fence
					held[c.Name]--
					mu.Unlock()
					if got := a.must(fmt.Sprintf("call interlock_turn(x'%x', '%s', '%s', null, 0, 1, 1, 1, 1, 0, '', %d, 30, '', null)", c.Name, a.id, c.ID, far().UnixMicro())); got[1] != "t" {
						t.Errorf("%s: released: %v", c.Name, got)
					}
				}
			})
		}
		all.Wait()
	}
}

// The clock of a step is that of the server, whatever the time zone, in the hour that summer time
// repeats, too.
func TestClockKnowsNoTimeZone(t *testing.T) {
	t.Parallel()
	s, err := servertest.StartMariaDB(t.Context(), servertest.Options{Clock: true, Env: []string{"TZ=Europe/Berlin"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	db := pool(t, s, nil)
	for _, statement := range statements("interlock_") {
		execute(t, db, statement)
	}
	fold := time.Date(2030, 10, 27, 0, 30, 0, 0, time.UTC) // 2:30 there for the first time
	for range 2 {
		var now float64
		if err := db.QueryRowContext(t.Context(), "select unix_timestamp()").Scan(&now); err != nil {
			t.Fatal(err)
		}
		if err := s.Step(time.Duration(float64(fold.Unix())-now) * time.Second); err != nil {
			t.Fatal(err)
		}
		rows, err := asks(t.Context(), db, fmt.Sprintf("call interlock_open('%s', 1000000, '')", driver.NewID()))
		if err != nil {
			t.Fatal(err)
		}
		if us := number(rows[0][0]); us < int(fold.UnixMicro())-2e6 || us > int(fold.UnixMicro())+60e6 {
			t.Errorf("at %v the clock of a step says %v", fold, time.UnixMicro(int64(us)).UTC())
		}
		fold = fold.Add(time.Hour)
	}
}

// A binary log of statements cannot have what is done at READ COMMITTED: the server refuses it, and
// nothing is changed.
func TestBinaryLogs(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]uint16{"ROW": 0, "MIXED": 0, "STATEMENT": 1665} {
		s := migrated(t, "--log-bin=log", "--server-id=1", "--binlog-format="+format)
		db := pool(t, s, nil)
		id := driver.NewID()
		_, err := asks(t.Context(), db, fmt.Sprintf("call interlock_open('%s', 100000000, '')", id))
		if code(err) != want || (want == 0) != (err == nil) {
			t.Errorf("%s: %v; want error %d", format, err, want)
		}
		if err != nil {
			continue
		}
		c := mutex("x")
		if rows, err := asks(t.Context(), db, step(&client{id: id}, c, far(), 5)); err != nil || !strings.HasPrefix(rows[0][0], "2 ") {
			t.Errorf("%s: %v, %v", format, rows, err)
		}
	}
}

// What max_statement_time ends is rolled back, and its connection is as it was.
func TestStatementTime(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	root, db := pool(t, s, nil), one(t, pool(t, s, map[string]string{"max_statement_time": "0.2"}))
	a := opens(t, db)
	c := mutex("busy")
	if g := a.turn(c.Name, nil, &c); !g.Held {
		t.Fatalf("%+v", g)
	}
	a.turn(c.Name, &c, nil)
	tx := locks(t, root, "select * from interlock_lock for update")
	_, err := asks(t.Context(), db, step(a, c, far(), 30))
	if code(err) != 1969 {
		t.Errorf("a step got %v while somebody else had the row; want error 1969", err)
	}
	_ = tx.Rollback()
	rows, err := asks(t.Context(), db, "select @@in_transaction, @@innodb_lock_wait_timeout")
	if err != nil || strings.Join(rows[0], " ") != "0 50" {
		t.Errorf("the connection is left with %v, %v", rows, err)
	}
}

// A user of locks needs these rights and no more.
func TestRights(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	root := pool(t, s, nil)
	for _, statement := range []string{
		"create user u@127.0.0.1", "grant execute on test.* to u@127.0.0.1", "grant select, insert, update on test.interlock_lock to u@127.0.0.1",
		"grant select, insert, update, delete on test.interlock_session to u@127.0.0.1", "create user v@127.0.0.1", "grant execute on test.* to v@127.0.0.1",
	} {
		execute(t, root, statement)
	}
	as := func(user string) *sql.DB {
		db, err := sql.Open("mysql", user+"@tcp("+s.Addr()+")/test")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	a := opens(t, as("u"))
	c, next := mutex("x"), mutex("x")
	a.turn("x", nil, &c)
	a.turn("x", nil, &next)
	if g := a.turn("x", &c, nil); !g.was {
		t.Errorf("%+v", g)
	}
	a.renew()
	a.close()
	if _, err := asks(context.Background(), as("v"), fmt.Sprintf("call interlock_open('%s', 1000000, '')", driver.NewID())); code(err) != 1142 {
		t.Errorf("who has no rights to the tables got %v; want error 1142", err)
	}
}
