package mysqllock_test

import (
	"testing"

	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
)

// execute makes statements of the superuser.
func execute(t *testing.T, s *servertest.Server, statements ...string) {
	t.Helper()
	db := pool(t, s.URL())
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// ask returns the only value of a query of the superuser.
func ask[V any](t *testing.T, s *servertest.Server, query string) (v V) {
	t.Helper()
	if err := pool(t, s.URL()).QueryRowContext(t.Context(), query).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

// What users of locks do.
var (
	user, enter, session = storetest.User, storetest.Enter, storetest.Session
	mutex, tries         = storetest.Mutex, storetest.Tries
	asks, awaits, leaves = storetest.Asks, storetest.Awaits, storetest.Leaves
	told, until, cycle   = storetest.Told, storetest.Until, storetest.Cycle
)
