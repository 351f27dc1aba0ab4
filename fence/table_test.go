package fence_test

import (
	"database/sql"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/fence/internal/tabletest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// On PostgreSQL. On SQLite the same is tested by package fence/sqlite, a module of its own.
func TestTable(t *testing.T) {
	s := servertest.Postgres(t)
	admin, err := sql.Open("pgx", s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	var schemas atomic.Int32
	// The group ends when its parallel tests have, before the server does.
	t.Run("PostgreSQL", func(t *testing.T) {
		tabletest.Run(t, tabletest.Database{
			Dialect:    fence.PostgreSQL,
			Parameters: [2]string{"$1", "$2"},
			Open: func(t *testing.T) *sql.DB {
				t.Helper()
				schema := fmt.Sprint("s", schemas.Add(1))
				if _, err := admin.Exec("create schema " + schema); err != nil {
					t.Fatal(err)
				}
				db, err := sql.Open("pgx", s.URL()+"&search_path="+schema)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = db.Close() })
				db.SetMaxOpenConns(8)
				return db
			},
		})
	})
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
