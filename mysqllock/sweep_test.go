package mysqllock

import (
	"fmt"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// Opening a session takes out those that ended long ago, and looks at a few, however many there
// are: who looked at all, to lock what has ended, kept everybody else who opened waiting, and
// filled the server's memory with locks.
func TestOpeningSweepsAFew(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	root, db := pool(t, s, nil), one(t, pool(t, s, nil))
	rows := make([]string, 1000)
	for i := range rows {
		rows[i] = fmt.Sprintf("('%s', 1000, %d, '', '')", driver.NewID(), far().UnixMicro())
	}
	execute(t, root, "insert into interlock_session (id, ttl, valid_until, broken, owner) values "+strings.Join(rows, ", "))
	count := func(query string) (n int) {
		t.Helper()
		if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return n
	}
	const read = "select sum(variable_value) from information_schema.session_status where variable_name in ('handler_read_next', 'handler_read_rnd_next')"
	before := count(read)
	opens(t, db)
	if n := count(read) - before; n > 500 { // with those of this query itself
		t.Errorf("an open among a thousand sessions reads %d rows, want a few", n)
	}

	execute(t, root, "update interlock_session set valid_until = 1 where id in (select id from (select id from interlock_session order by ttl desc, id limit 500) some)")
	const dead, lives = "select count(*) from interlock_session where valid_until = 1", "select count(*) from interlock_session where valid_until <> 1"
	left := count(lives)
	opened := 0
	for ; count(dead) > 50; opened++ {
		if opened == 1000 {
			t.Fatalf("%d of 500 dead sessions stay when a thousand were opened", count(dead))
		}
		opens(t, db)
	}
	if n := count(lives) - opened; n != left {
		t.Errorf("%d sessions that live are left, want %d", n, left)
	}
}
