// Package tabletest tests a fence.Table on a database: what holds on every dialect.
package tabletest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/fence"
)

// Database is where the tests run.
type Database struct {
	Dialect fence.Dialect
	// Open opens a new database, or schema, with a pool of several connections, as an application would.
	Open func(t *testing.T) *sql.DB
	// Parameters are how the dialect marks the first and the second.
	Parameters [2]string
}

// Run runs all tests.
func Run(t *testing.T, d Database) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Database){
		"NoneLost":       noneLost,
		"PausedHolder":   pausedHolder,
		"DoOrder":        doOrder,
		"FirstUse":       firstUse,
		"FirstUseAtOnce": firstUseAtOnce,
		"Guard":          guard,
		"Zero":           zero,
		"Equal":          equal,
		"Rule":           rule,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, d)
		})
	}
}

// open opens a database with the table of fences and one of documents.
func (d Database) open(t *testing.T) (*sql.DB, *fence.Table) {
	t.Helper()
	table, err := fence.NewTable(d.Dialect, "")
	if err != nil {
		t.Fatal(err)
	}
	db := d.Open(t)
	for _, stmt := range []string{table.Schema(), `CREATE TABLE doc (id TEXT PRIMARY KEY, n INTEGER NOT NULL)`} {
		if _, err := db.Exec(stmt); err != nil {
			t.Fatal(err)
		}
	}
	return db, table
}

// row is a document that is guarded by its id.
type row struct {
	Database
	table *fence.Table
	db    *sql.DB
	id    string
}

func (d Database) row(table *fence.Table, db *sql.DB, id string) (*row, error) {
	_, err := db.Exec(`INSERT INTO doc (id, n) VALUES (`+d.Parameters[0]+`, 0)`, id)
	return &row{d, table, db, id}, err
}

func (r *row) claim(token uint64) error {
	return r.table.Claim(context.Background(), r.db, r.id, token)
}

func (r *row) write(token uint64, v int) error {
	return r.table.Do(context.Background(), r.db, r.id, token, func(tx *sql.Tx) error {
		_, err := tx.Exec(`UPDATE doc SET n = `+r.Parameters[0]+` WHERE id = `+r.Parameters[1], v, r.id)
		return err
	})
}

func (r *row) read() (n int, err error) {
	err = r.db.QueryRow(`SELECT n FROM doc WHERE id = `+r.Parameters[0], r.id).Scan(&n)
	return n, err
}

// holds says whether the document has the number n.
func (r *row) holds(t *testing.T, n int, when string) {
	t.Helper()
	if got, err := r.read(); got != n || err != nil {
		t.Errorf("%s: value %d, %v; want %d", when, got, err, n)
	}
}

// Eight holders over eight connections, no lock at all, everybody with the next token: each increment that was
// acknowledged is in the number, and the tokens kept only grew.
func noneLost(t *testing.T, d Database) {
	t.Helper()
	ctx := context.Background()
	db, table := d.open(t)
	r, err := d.row(table, db, "n")
	if err != nil {
		t.Fatal(err)
	}
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
					_, err := tx.Exec(`UPDATE doc SET n = `+d.Parameters[0]+` WHERE id = 'n'`, n+1)
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
	r.holds(t, acked, fmt.Sprintf("after %d acknowledged and %d refused increments", acked, stale))
	if acked+stale != 200 {
		t.Errorf("%d acknowledged, %d refused: want 200 together", acked, stale)
	}
	highest, err := table.Highest(ctx, db, "n")
	if err != nil || highest > tokens || highest < uint64(acked) {
		t.Errorf("highest %d, %v after %d tokens", highest, err, tokens)
	}
	t.Logf("%d acknowledged, %d refused", acked, stale)
}

// The story of the package doc on a database: A (33) wakes after B (34) has read. With B's claim A is refused; without
// it A's update is acknowledged and then lost, which the second half must show.
func pausedHolder(t *testing.T, d Database) {
	t.Helper()
	for _, claims := range []bool{true, false} {
		db, table := d.open(t)
		r, err := d.row(table, db, "n")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.write(33, 5); err != nil {
			t.Fatal(err)
		}
		a, err := r.read()
		if err != nil {
			t.Fatal(err)
		}
		if claims {
			if err := r.claim(34); err != nil {
				t.Fatal(err)
			}
		}
		b, err := r.read()
		if err != nil {
			t.Fatal(err)
		}
		errA := r.write(33, a+1)
		if err := r.write(34, b+1); err != nil {
			t.Fatal(err)
		}
		if claims && !errors.Is(errA, fence.ErrStale) {
			t.Errorf("with a claim: A got %v, want ErrStale", errA)
		}
		if !claims && errA != nil {
			t.Errorf("without a claim: A got %v, want its update acknowledged and lost", errA)
		}
		r.holds(t, 6, fmt.Sprint("with a claim: ", claims))
	}
}

// A refused Do has not even read; a failed or panicking one leaves nothing, its token included.
func doOrder(t *testing.T, d Database) {
	t.Helper()
	ctx := context.Background()
	db, table := d.open(t)
	r, err := d.row(table, db, "n")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.write(10, 1); err != nil {
		t.Fatal(err)
	}
	ran := false
	err = table.Do(ctx, db, "n", 9, func(*sql.Tx) error { ran = true; return nil })
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
	r.holds(t, 1, "after failures")
	if highest, err := table.Highest(ctx, db, "n"); highest != 10 || err != nil {
		t.Errorf("after failures: highest %d, %v; want 10", highest, err)
	}
	if err := table.Do(ctx, db, "n", 10, set); err != nil {
		t.Errorf("the holder itself afterwards: %v", err)
	}
	r.holds(t, 99, "the holder itself afterwards")
}

// A name that was never claimed has no row that Guard could lock. Do makes it, and its claim stays.
func firstUse(t *testing.T, d Database) {
	t.Helper()
	ctx := context.Background()
	db, table := d.open(t)
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
func firstUseAtOnce(t *testing.T, d Database) {
	t.Helper()
	ctx := context.Background()
	db, table := d.open(t)
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
func guard(t *testing.T, d Database) {
	t.Helper()
	ctx := context.Background()
	db, table := d.open(t)
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

// Zero is refused where nothing was seen, and no comparison would refuse it.
func zero(t *testing.T, d Database) {
	t.Helper()
	db, table := d.open(t)
	r, err := d.row(table, db, "n")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.claim(0); !errors.Is(err, fence.ErrNoToken) {
		t.Errorf("claim of 0: %v, want ErrNoToken", err)
	}
	if err := r.write(0, 1); !errors.Is(err, fence.ErrNoToken) {
		t.Errorf("write with 0: %v, want ErrNoToken", err)
	}
	r.holds(t, 0, "after a write with 0")
}

// One holder writes many times: the second write has the token that the first made the highest.
func equal(t *testing.T, d Database) {
	t.Helper()
	db, table := d.open(t)
	r, err := d.row(table, db, "n")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := errors.Join(r.claim(7), r.write(7, i+1)); err != nil {
			t.Errorf("pass %d with an equal token: %v, want it accepted", i, err)
		}
	}
	r.holds(t, 3, "after three passes")
}
