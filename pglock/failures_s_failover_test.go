package pglock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/pglock"
)

// leases are the techniques by which a lock is a lease.
var leases = []string{"rows", "session", "rowlock"}

// by is the URL of a technique.
func by(url, technique string) string { return url + "&technique=" + technique }

// A primary is lost and a standby that lacks its last commits takes its place: whoever held a lock
// is told that it is gone, or has it still, and tokens grow for all.
func TestS18_AStandbyIsPromoted(t *testing.T) {
	t.Parallel()
	s := migrated(t, servertest.Replicated...)
	standby := servertest.Standby(t, s)
	both := strings.Replace(s.URL(), s.Addr(), s.Addr()+","+standby.Addr(), 1) + "&target_session_attrs=read-write"
	inTx := func(o *pglock.TxOptions) uint64 {
		tx, err := clients["pgx"](t, both)("read committed")
		if err != nil {
			t.Fatal(err)
		}
		token, err := tx.lock("failover", o)
		if err := errors.Join(err, tx.commit()); err != nil {
			t.Fatal(err)
		}
		return token
	}
	held, claims, last := map[string]driver.Session{}, map[string]driver.Claim{}, map[string]uint64{}
	for _, technique := range leases {
		a, mine := user(t, by(both, technique)), mutex("failover/"+technique)
		asks(t, a, mine, true)
		leaves(t, a, mine, true)
		held[technique] = a
	}
	until(t, "the standby has it all", func() bool {
		return ask[bool](t, standby, fmt.Sprintf("select pg_last_wal_replay_lsn() >= '%s'", ask[string](t, s, "select pg_current_wal_lsn()::text")))
	})
	execute(t, standby, "alter system set primary_conninfo = ''")
	execute(t, standby, "select pg_reload_conf()")
	until(t, "the standby follows no more", func() bool { return ask[int](t, s, "select count(*) from pg_stat_replication") == 0 })
	for _, technique := range leases {
		claims[technique] = mutex("failover/" + technique)
		last[technique] = asks(t, held[technique], claims[technique], true).Fence
	}
	last["InTx"], last["InTx by advisory"] = inTx(nil), inTx(&pglock.TxOptions{Advisory: true})
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	execute(t, standby, "select pg_promote()")
	until(t, "it took a second, as failovers do", func() bool {
		return ask[bool](t, standby, fmt.Sprintf("select extract(epoch from clock_timestamp()) * 1000000 - 1000000 > %d", last["InTx by advisory"]))
	})

	if token := inTx(nil); token < last["InTx"]+driver.Stride {
		t.Errorf("InTx: token %d after %d, which the lost primary gave", token, last["InTx"])
	}
	if token := inTx(&pglock.TxOptions{Advisory: true}); token < last["InTx by advisory"]+driver.Stride {
		t.Errorf("InTx by advisory: token %d after %d, which the lost primary gave", token, last["InTx by advisory"])
	}
	for _, technique := range leases {
		a, mine := held[technique], claims[technique]
		var r driver.Renewal
		var lost bool
		until(t, "the new primary answers "+technique, func() (over bool) {
			var err error
			r, err = a.Renew(t.Context())
			lost = errors.Is(err, driver.ErrSessionLost)
			return err == nil || lost
		})
		if !lost && (len(r.Lost) != 1 || r.Lost[0].ID != mine.ID) {
			t.Errorf("%s: after the failover the holder hears that %d claims are lost, want that his is", technique, len(r.Lost))
		}
		b, next := user(t, by(both, technique)), mutex(mine.Name)
		if g := asks(t, b, next, true); g.Fence < last[technique]+driver.Stride {
			t.Errorf("%s: token %d after %d, which the lost primary gave", technique, g.Fence, last[technique])
		}
		leaves(t, b, next, true)
	}
}

// A standby is refused in every way, and by a word about its primary.
func TestStandbyIsRefused(t *testing.T) {
	t.Parallel()
	s := migrated(t, servertest.Replicated...)
	standby := servertest.Standby(t, s)
	for _, technique := range leases {
		if _, err := enter(t, by(standby.URL(), technique), time.Minute); !errors.Is(err, driver.ErrNotSent) || !strings.Contains(err.Error(), "the server is a standby: want its primary") {
			t.Errorf("%s on a standby: %v", technique, err)
		}
	}
	if err := pglock.Migrate(t.Context(), pool(t, standby.URL()), nil); err == nil || !strings.Contains(err.Error(), "want its primary") {
		t.Errorf("the tables of a standby: %v", err)
	}
	for _, o := range []*pglock.TxOptions{nil, {Advisory: true}} {
		tx, err := clients["pgx"](t, standby.URL())(string(pgx.ReadCommitted))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.lock("standby", o); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "the transaction is read-only") {
			t.Errorf("InTx, %+v: %v", o, err)
		}
		tx.undo()
	}
}
