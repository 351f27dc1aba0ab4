package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // a driver of database/sql
	_ "github.com/lib/pq"              // another one

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/internal/servertest"
)

// onPostgres opens a new database of a server by a client, with a table of fences.
func onPostgres(t *testing.T, s *servertest.Server, client, settings string) (*sql.DB, *fence.Table) {
	t.Helper()
	db, err := sql.Open(client, s.URL()+settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(8)
	table, err := fence.NewTable(fence.PostgreSQL, "app.fence")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // again it changes nothing
		if _, err := db.Exec("create schema if not exists app; create table if not exists app.counter (n bigint not null); " + table.Schema()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec("truncate app.fence, app.counter; insert into app.counter values (0)"); err != nil {
		t.Fatal(err)
	}
	return db, table
}

// postgresClients are drivers of database/sql.
var postgresClients = []string{"pgx", "postgres"}

func TestTableOnPostgres(t *testing.T) {
	s := servertest.Postgres(t)
	for _, client := range postgresClients {
		t.Run(client, func(t *testing.T) {
			ctx := t.Context()
			db, table := onPostgres(t, s, client, "")
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := table.Guard(ctx, tx, "n", 33); !errors.Is(err, fence.ErrUnclaimed) {
				t.Errorf("a name without a row: %v", err)
			}
			_ = tx.Rollback()
			count := func(token uint64, fail error) error {
				return table.Do(ctx, db, "n", token, func(tx *sql.Tx) error {
					_, err := tx.ExecContext(ctx, "update app.counter set n = n + 1")
					return errors.Join(err, fail)
				})
			}
			broken := errors.New("broken off")
			var stale *fence.StaleError
			switch {
			case count(33, nil) != nil, count(33, nil) != nil:
				t.Error("one holder does not write twice")
			case !errors.Is(count(34, broken), broken):
				t.Error("what was broken off is not")
			case count(33, nil) != nil:
				t.Error("a guard was rolled back, and its token stays")
			case table.Claim(ctx, db, "n", 35) != nil:
				t.Error("a later holder cannot claim")
			case !errors.As(count(34, nil), &stale):
				t.Error("a stale token is taken")
			case table.Claim(ctx, db, "n", 0) == nil, table.Claim(ctx, db, "n", 1<<63) == nil:
				t.Error("a token that is none is taken")
			}
			for _, other := range []string{"N", "n ", "ñ", strings.Repeat("x", 1024)} { // names compare byte by byte
				if err := table.Claim(ctx, db, other, 1); err != nil {
					t.Errorf("name %.4q: %v", other, err)
				}
			}
			var n int
			if err := db.QueryRow("select n from app.counter").Scan(&n); err != nil || n != 3 {
				t.Errorf("%d writes, %v; want 3", n, err)
			}
			if highest, err := table.Highest(ctx, db, "n"); err != nil || highest != 35 {
				t.Errorf("highest token %d, %v", highest, err)
			}
		})
	}
}

// Holders read and write back, all at once, each with tokens of its own that grow: what is acknowledged is counted once, at every
// isolation level that may be the default. Above READ COMMITTED some get an error.
func TestTableOnPostgresCounts(t *testing.T) {
	s := servertest.Postgres(t)
	for _, client := range postgresClients {
		for _, level := range []string{"read committed", "repeatable read", "serializable"} {
			t.Run(client+"/"+level, func(t *testing.T) {
				db, table := onPostgres(t, s, client, "&default_transaction_isolation="+strings.ReplaceAll(level, " ", "%20"))
				if err := table.Claim(t.Context(), db, "n", 1); err != nil {
					t.Fatal(err)
				}
				var done, tokens atomic.Int64
				var all sync.WaitGroup
				for range 8 {
					all.Go(func() {
						for range 25 {
							err := count(t.Context(), db, table, uint64(tokens.Add(1)))
							switch {
							case err == nil:
								done.Add(1)
							case level == "read committed" && !errors.Is(err, fence.ErrStale):
								t.Error(err)
							}
						}
					})
				}
				all.Wait()
				var n int64
				if err := db.QueryRow("select n from app.counter").Scan(&n); err != nil || n != done.Load() || n == 0 {
					t.Errorf("counted %d, %v; %d were acknowledged", n, err, done.Load())
				}
			})
		}
	}
}

// count adds one by reading and writing back.
func count(ctx context.Context, db *sql.DB, table *fence.Table, token uint64) error {
	return table.Do(ctx, db, "n", token, func(tx *sql.Tx) error {
		var n int64
		if err := tx.QueryRowContext(ctx, "select n from app.counter").Scan(&n); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "update app.counter set n = $1", n+1)
		return err
	})
}
