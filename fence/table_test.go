package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/interlock-go/interlock/fence"
)

// openSQLite opens a new database file with a pool of several connections, as an application would.
func openSQLite(t *testing.T) *sql.DB {
	t.Helper()
	dsn := "file:" + filepath.Join(t.TempDir(), "app.db") + "?_pragma=busy_timeout(60000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)"
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(8)
	for _, stmt := range []string{newTable(t).Schema(), `CREATE TABLE doc (id TEXT PRIMARY KEY, n INTEGER NOT NULL)`} {
		if _, err := db.Exec(stmt); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

func newTable(t *testing.T) *fence.Table {
	t.Helper()
	table, err := fence.NewTable(fence.SQLite, "")
	if err != nil {
		t.Fatal(err)
	}
	return table
}

type guardedRow struct {
	t     tester
	table *fence.Table
	db    *sql.DB
	id    string
}

func newGuardedRow(t tester, table *fence.Table, db *sql.DB, id string) *guardedRow {
	t.Helper()
	if _, err := db.Exec(`INSERT INTO doc (id, n) VALUES (?, 0)`, id); err != nil {
		t.Fatalf("%v", err)
	}
	return &guardedRow{t: t, table: table, db: db, id: id}
}

func (g *guardedRow) claim(token uint64) error {
	return g.table.Claim(context.Background(), g.db, g.id, token)
}

func (g *guardedRow) write(token uint64, v int) error {
	return g.table.Do(context.Background(), g.db, g.id, token, func(tx *sql.Tx) error {
		_, err := tx.Exec(`UPDATE doc SET n = ? WHERE id = ?`, v, g.id)
		return err
	})
}

func (g *guardedRow) read() int {
	var n int
	if err := g.db.QueryRow(`SELECT n FROM doc WHERE id = ?`, g.id).Scan(&n); err != nil {
		g.t.Fatalf("%v", err)
	}
	return n
}

// Eight holders over eight connections, no lock at all, everybody with the next token: each increment that was
// acknowledged is in the number, and the tokens kept only grew.
func TestTable_NoneLost(t *testing.T) {
	ctx := context.Background()
	db, table := openSQLite(t), newTable(t)
	g := newGuardedRow(t, table, db, "n")
	var mu sync.Mutex
	var tokens uint64
	acked, stale := 0, 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 25 {
				mu.Lock()
				tokens++
				token := tokens
				mu.Unlock()
				err := table.Do(ctx, db, "n", token, func(tx *sql.Tx) error {
					var n int
					if err := tx.QueryRow(`SELECT n FROM doc WHERE id = 'n'`).Scan(&n); err != nil {
						return err
					}
					_, err := tx.Exec(`UPDATE doc SET n = ? WHERE id = 'n'`, n+1)
					return err
				})
				mu.Lock()
				switch {
				case err == nil:
					acked++
				case errors.Is(err, fence.ErrStale):
					stale++
				default:
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if got := g.read(); got != acked || acked+stale != 200 {
		t.Errorf("number %d after %d acknowledged and %d refused increments of 200", got, acked, stale)
	}
	highest, err := table.Highest(ctx, db, "n")
	if err != nil || highest > tokens || highest < uint64(acked) {
		t.Errorf("highest %d, %v after %d tokens", highest, err, tokens)
	}
	t.Logf("%d acknowledged, %d refused", acked, stale)
}

// The story of the package doc on a database: A (33) wakes after B (34) has read. With B's claim A is refused; without
// it A's update is acknowledged and then lost, which the second half must show.
func TestTable_PausedHolder(t *testing.T) {
	for _, claims := range []bool{true, false} {
		g := newGuardedRow(t, newTable(t), openSQLite(t), "n")
		if err := g.write(33, 5); err != nil {
			t.Fatal(err)
		}
		a := g.read()
		if claims {
			if err := g.claim(34); err != nil {
				t.Fatal(err)
			}
		}
		b := g.read()
		errA := g.write(33, a+1)
		if err := g.write(34, b+1); err != nil {
			t.Fatal(err)
		}
		if claims && (!errors.Is(errA, fence.ErrStale) || g.read() != 6) {
			t.Errorf("with a claim: A got %v, value %d; want ErrStale and 6", errA, g.read())
		}
		if !claims && (errA != nil || g.read() != 6) {
			t.Errorf("without a claim: A got %v, value %d; want its update acknowledged and lost", errA, g.read())
		}
	}
}

// A refused Do has not even read; a failed or panicking one leaves nothing, its token included.
func TestTable_DoOrder(t *testing.T) {
	ctx := context.Background()
	db, table := openSQLite(t), newTable(t)
	g := newGuardedRow(t, table, db, "n")
	if err := g.write(10, 1); err != nil {
		t.Fatal(err)
	}
	ran := false
	err := table.Do(ctx, db, "n", 9, func(*sql.Tx) error { ran = true; return nil })
	if !errors.Is(err, fence.ErrStale) || ran {
		t.Errorf("stale Do: %v, ran %v; want ErrStale before anything runs", err, ran)
	}
	boom := errors.New("boom")
	set := func(tx *sql.Tx) error {
		_, err := tx.Exec(`UPDATE doc SET n = 99 WHERE id = 'n'`)
		return err
	}
	if err := table.Do(ctx, db, "n", 11, func(tx *sql.Tx) error { return errors.Join(set(tx), boom) }); !errors.Is(err, boom) {
		t.Errorf("failed Do: %v, want fn's error", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = table.Do(ctx, db, "n", 12, func(tx *sql.Tx) error { panic(set(tx)) })
	}()
	highest, err := table.Highest(ctx, db, "n")
	if g.read() != 1 || highest != 10 || err != nil {
		t.Errorf("after failures: value %d, highest %d, %v; want 1 and 10", g.read(), highest, err)
	}
	if err := table.Do(ctx, db, "n", 10, set); err != nil || g.read() != 99 {
		t.Errorf("the holder itself afterwards: %v, value %d", err, g.read())
	}
}

// A name that was never claimed has no row that Guard could lock. Do makes it, and its claim stays.
func TestTable_FirstUse(t *testing.T) {
	ctx := context.Background()
	db, table := openSQLite(t), newTable(t)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Guard(ctx, tx, "new", 34); !errors.Is(err, fence.ErrUnclaimed) || errors.Is(err, fence.ErrStale) {
		t.Errorf("Guard: %v, want ErrUnclaimed", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	boom, ran := errors.New("boom"), 0
	if err := table.Do(ctx, db, "new", 34, func(*sql.Tx) error { ran++; return boom }); err != boom || ran != 1 { //nolint:errorlint // as it is
		t.Errorf("Do: %v after %d runs, want fn's error after one", err, ran)
	}
	if highest, err := table.Highest(ctx, db, "new"); highest != 34 || err != nil {
		t.Errorf("highest %d, %v; want 34", highest, err)
	}
	if err := table.Do(ctx, db, "new", 33, func(*sql.Tx) error { ran++; return nil }); !errors.Is(err, fence.ErrStale) || ran != 1 {
		t.Errorf("Do with an earlier token: %v after %d runs, want ErrStale", err, ran)
	}
}

// Everybody is first: one row comes of it, and the highest token.
func TestTable_FirstUseAtOnce(t *testing.T) {
	ctx := context.Background()
	db, table := openSQLite(t), newTable(t)
	for round := range 10 {
		name := fmt.Sprint("new ", round)
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				err := table.Do(ctx, db, name, uint64(g+1), func(*sql.Tx) error { return nil })
				if err != nil && !errors.Is(err, fence.ErrStale) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if highest, err := table.Highest(ctx, db, name); highest != 8 || err != nil {
			t.Errorf("highest %d, %v; want 8", highest, err)
		}
	}
}

// Guard in a transaction of the user's, for names that differ in case only and names that no SQL would like.
func TestTable_Guard(t *testing.T) {
	ctx := context.Background()
	db, table := openSQLite(t), newTable(t)
	names := []string{"a", "A", "ä'; DROP TABLE fence; --", strings.Repeat("x", 1024)}
	for _, name := range names {
		if err := table.Claim(ctx, db, name, 1); err != nil {
			t.Fatal(err)
		}
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		for _, token := range []uint64{1, 1, fence.Max} {
			if err := table.Guard(ctx, tx, name, token); err != nil {
				t.Errorf("%.20q with %d: %v", name, token, err)
			}
		}
		var stale *fence.StaleError
		if err := table.Guard(ctx, tx, name, 5); !errors.As(err, &stale) || stale.Highest != fence.Max || stale.Resource != name {
			t.Errorf("%.20q: %v, want a StaleError with the highest", name, err)
		}
	}
	for _, name := range []string{"", strings.Repeat("x", 1025)} {
		if err := table.Guard(ctx, tx, name, 1); err == nil {
			t.Errorf("name of %d bytes accepted", len(name))
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := db.QueryRow(`SELECT count(*) FROM fence`).Scan(&rows); err != nil || rows != 4 {
		t.Errorf("%d rows, %v; want 4", rows, err)
	}
	if highest, err := table.Highest(ctx, db, "never"); highest != 0 || err != nil {
		t.Errorf("unknown name: %d, %v; want 0", highest, err)
	}
	if _, err := db.Exec(`UPDATE fence SET token = -1 WHERE name = 'a'`); err != nil {
		t.Fatal(err)
	}
	if _, err := table.Highest(ctx, db, "a"); err == nil {
		t.Error("a negative token in the table: want an error")
	}
}

// A table in a schema, which in SQLite is an attached database.
func TestTable_Schema(t *testing.T) {
	ctx, db := context.Background(), openSQLite(t)
	db.SetMaxOpenConns(1) // ATTACH is the connection's
	if _, err := db.Exec(`ATTACH ':memory:' AS app`); err != nil {
		t.Fatal(err)
	}
	table, err := fence.NewTable(fence.SQLite, "app.locks_fence")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // creating it again changes nothing
		if _, err := db.Exec(table.Schema()); err != nil {
			t.Fatal(err)
		}
		if err := table.Claim(ctx, db, "n", 34); err != nil {
			t.Error(err)
		}
	}
	if err := table.Claim(ctx, db, "n", 33); !errors.Is(err, fence.ErrStale) {
		t.Errorf("%v, want ErrStale", err)
	}
}

func TestTable_Names(t *testing.T) {
	for _, good := range []string{"", "fence", "_f", "app.fence_2"} {
		for _, d := range []fence.Dialect{fence.SQLite, fence.PostgreSQL, fence.MySQL} {
			table, err := fence.NewTable(d, good)
			if err != nil {
				t.Errorf("%v, %q: %v", d, good, err)
			} else if want := "CREATE TABLE IF NOT EXISTS "; !strings.HasPrefix(table.Schema(), want) {
				t.Errorf("%v: schema %q", d, table.Schema())
			}
		}
	}
	for _, bad := range []string{" ", "a b", "f;", `f"`, "1f", "a.b.c", ".f", "f.", "fé", "f\n", strings.Repeat("f", 64)} {
		if _, err := fence.NewTable(fence.SQLite, bad); err == nil {
			t.Errorf("table name %q accepted", bad)
		}
	}
	if _, err := fence.NewTable(0, "fence"); err == nil {
		t.Error("dialect 0 accepted")
	}
}
