package servertest_test

import (
	"testing"

	"github.com/interlock-go/interlock/internal/servertest"
)

// Clients share a connection of the server where the pool is of transactions, and none where it is
// of sessions.
func TestPgBouncerSharesConnections(t *testing.T) {
	t.Parallel()
	s := servertest.Postgres(t)
	shared, apart := servertest.PgBouncer(t, s), servertest.PgBouncer(t, s, "pool_mode=session", "server_reset_query=DISCARD ALL")
	for _, b := range []*servertest.Server{shared, apart} {
		if got := mustSQL(t, b, "SELECT current_user"); got != "postgres" {
			t.Errorf("user %q", got)
		}
	}
	if first, second := mustSQL(t, shared, "SELECT pg_backend_pid()"), mustSQL(t, shared, "SELECT pg_backend_pid()"); first != second {
		t.Errorf("backends %s and %s, want one for both", first, second)
	}
	if err := shared.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustSQL(t, shared, "SELECT 1")
}
