package servertest_test

import (
	"testing"

	"github.com/interlock-go/interlock/internal/servertest"
)

// A standby has what its primary has, writes nothing, and does when it is promoted, also after a
// restart.
func TestStandbyIsPromoted(t *testing.T) {
	t.Parallel()
	s := servertest.Postgres(t, servertest.Replicated...)
	mustSQL(t, s, "CREATE TABLE followed (n int)")
	b := servertest.Standby(t, s)
	if got := mustSQL(t, b, "SELECT pg_is_in_recovery()::text || (SELECT count(*) FROM followed)"); got != "true0" {
		t.Errorf("in recovery, and rows: %s; want true, 0", got)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := mustSQL(t, b, "SELECT pg_promote()::text"); got != "true" {
		t.Fatalf("promoted: %s", got)
	}
	mustSQL(t, b, "INSERT INTO followed VALUES (1) RETURNING n")
	if err := b.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustSQL(t, b, "INSERT INTO followed VALUES (2) RETURNING n")
}
