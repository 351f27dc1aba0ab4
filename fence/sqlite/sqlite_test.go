package sqlite

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/fence/internal/tabletest"
)

// open opens a new database file with a pool of several connections, as an application would.
func open(t *testing.T) *sql.DB {
	t.Helper()
	dsn := "file:" + filepath.Join(t.TempDir(), "app.db") + "?_pragma=busy_timeout(60000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)"
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(8)
	return db
}

func TestTable(t *testing.T) {
	tabletest.Run(t, tabletest.Database{Dialect: fence.SQLite, Open: open, Parameters: [2]string{"?", "?"}})
}

// A table in a schema, which in SQLite is an attached database.
func TestTable_Schema(t *testing.T) {
	ctx, db := t.Context(), open(t)
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
