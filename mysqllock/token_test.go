package mysqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
)

// forms are how tokens are drawn: from a sequence, and from the counter of a table.
var forms = map[string]func(context.Context, *sql.DB) error{
	"MariaDB": func(ctx context.Context, db *sql.DB) error { return Migrate(ctx, db, nil) },
	"MySQL":   MigrateAsMySQL,
}

// draws draws a token as a connection does that was just made.
func draws(t *testing.T, db *sql.DB) uint64 {
	t.Helper()
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := results(t.Context(), c, "call interlock_advance()"); err != nil {
		t.Fatal(err)
	}
	rows, err := results(t.Context(), c, "call interlock_token()")
	if err != nil {
		t.Fatal(err)
	}
	return uint64(integer(rows[0][0]))
}

// Tokens grow by the stride, whatever is rolled back, crashes right after a draw, or sets the clock
// back; and both at once.
func TestTokensOfAllFormsGrow(t *testing.T) {
	t.Parallel()
	for form, migrate := range forms {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			s, err := servertest.StartMariaDB(t.Context(), servertest.Options{Clock: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			if err := migrate(t.Context(), pool(t, s, nil)); err != nil {
				t.Fatal(err)
			}
			var last uint64
			grows := func(what string, fence uint64) {
				t.Helper()
				if fence < last+driver.Stride || fence > driver.MaxFence-driver.Stride {
					t.Errorf("token %d after %d, %s", fence, last, what)
				}
				last = fence
			}
			crash := func() {
				t.Helper()
				if err := errors.Join(s.Kill(), s.Restart(t.Context())); err != nil {
					t.Fatal(err)
				}
			}
			db := pool(t, s, nil)
			for range 3 {
				grows("in a row", draws(t, db))
			}
			if now := time.Now().UnixMicro(); last < uint64(now-60e6) || last > uint64(now+60e6) {
				t.Errorf("token %d at %d: it is far from the clock", last, now)
			}
			for _, end := range []string{"rollback", "commit"} {
				tx, err := db.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tx.ExecContext(t.Context(), "call interlock_draw(@fence)"); err != nil {
					t.Fatal(err)
				}
				all, err := results(t.Context(), tx, "select @fence")
				if err != nil {
					t.Fatal(err)
				}
				grows("in a transaction", uint64(integer(all[0][0])))
				grows("beside a transaction", draws(t, pool(t, s, nil)))
				if _, err := tx.ExecContext(t.Context(), end); err != nil {
					t.Fatal(err)
				}
				grows("after "+end, draws(t, db))
			}
			for range 3 {
				crash()
				grows("after a crash", draws(t, pool(t, s, nil)))
			}
			if err := s.Step(-time.Hour); err != nil {
				t.Fatal(err)
			}
			grows("when the clock was set back", draws(t, pool(t, s, nil)))
			for range 3 {
				crash()
				db := pool(t, s, nil)
				for range 3 {
					grows("after a crash, when the clock was set back", draws(t, db))
				}
			}
		})
	}
}

// Eight connections at once draw no token twice, each in order, and none waits for the transaction
// of another one.
func TestTokensAtOnce(t *testing.T) {
	t.Parallel()
	for form, migrate := range forms {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			s := servertest.MariaDB(t)
			db := pool(t, s, nil)
			if err := migrate(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			open, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelSerializable})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = open.Rollback() }()
			if _, err := open.ExecContext(t.Context(), "call interlock_draw(@fence)"); err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			var all []uint64
			var both sync.WaitGroup
			for range 8 {
				both.Go(func() {
					var mine []uint64
					for range 50 {
						rows, err := asks(t.Context(), db, "call interlock_token()")
						if err != nil {
							t.Error(err)
							return
						}
						mine = append(mine, uint64(number(rows[0][0])))
					}
					if !slices.IsSorted(mine) {
						t.Error("one connection draws out of order")
					}
					mu.Lock()
					all = append(all, mine...)
					mu.Unlock()
				})
			}
			both.Wait()
			slices.Sort(all)
			for i := range all[1:] {
				if all[i+1] < all[i]+driver.Stride {
					t.Errorf("tokens %d and %d", all[i], all[i+1])
				}
			}
		})
	}
}

// A program's transaction that is under way is not ended by a draw that would, and a counter that
// has come to its end gives nothing.
func TestTokensThatAreRefused(t *testing.T) {
	t.Parallel()
	for form, migrate := range forms {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			s := servertest.MariaDB(t)
			db := one(t, pool(t, s, nil))
			if err := migrate(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			execute(t, db, "start transaction")
			if _, err := asks(t.Context(), db, "call interlock_token()"); code(err) != inTransaction {
				t.Errorf("in a transaction: %v; want error %d", err, inTransaction)
			}
			execute(t, db, "rollback")
			end := "do setval(interlock_token, 9007199254740960)"
			if form == "MySQL" {
				end = fmt.Sprintf("insert into interlock_token values (%d)", uint64(driver.MaxFence/driver.Stride))
			}
			execute(t, db, end)
			if rows, err := asks(t.Context(), db, "call interlock_token()"); err == nil {
				t.Errorf("after the last one: %v", rows)
			} else {
				t.Log(err)
			}
			if rows, err := asks(t.Context(), db, "select @@in_transaction"); err != nil || rows[0][0] != "0" {
				t.Errorf("a draw that failed has left its transaction open, so that no other one can be made: %v", err)
			}
		})
	}
}
