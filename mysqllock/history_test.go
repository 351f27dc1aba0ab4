package mysqllock_test

import (
	"database/sql"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/storetest"
)

// By connections of whatever settings, which are left as they were.
func TestRandomHistory(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	var drivers []driver.Driver
	left := map[*sql.DB]string{}
	for _, settings := range []map[string]string{
		nil,
		{"autocommit": "0", "tx_isolation": "'SERIALIZABLE'", "time_zone": "'+05:00'"},
		{"sql_mode": "'ANSI,NO_BACKSLASH_ESCAPES,TRADITIONAL,PIPES_AS_CONCAT'", "tx_isolation": "'REPEATABLE-READ'"},
		{"autocommit": "0", "sql_mode": "''"},
	} {
		d, db := over(t, s, func(c *mysql.Config) { c.Params, c.ClientFoundRows = settings, settings["autocommit"] != "" })
		drivers = append(drivers, d)
		left[db] = state(t, db)
	}
	root := pool(t, s.URL())
	storetest.History(t, drivers, func(session string) {
		if _, err := root.ExecContext(t.Context(), "update interlock_session set valid_until = 0 where id = ?", session); err != nil {
			t.Fatal(err)
		}
	})
	for db, before := range left {
		if after := state(t, db); after != before {
			t.Errorf("a connection of the pool was %s and is %s", before, after)
		}
	}
}
