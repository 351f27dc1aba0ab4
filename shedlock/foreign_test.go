package shedlock_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/storetest"
)

// java is a program that locks by ShedLock with usingDbTime: its statements as it makes them, with its parameters by number.
type java struct {
	*testing.T
	s  *database
	by string
}

// The clock of PostgreSQL, and of MySQL and MariaDB, as ShedLock reads it.
const (
	clockOfPostgres = "timezone('utc', CURRENT_TIMESTAMP)"
	clockOfMariaDB  = "UTC_TIMESTAMP(3)"
)

// exec puts the parameters in and makes the statement.
func (j java) exec(statement, name string, d time.Duration) bool {
	j.Helper()
	interval := strconv.FormatInt(d.Milliseconds(), 10) + " milliseconds"
	return j.s.must(j, strings.NewReplacer(
		":name", "'"+name+"'", ":lockedBy", "'"+j.by+"'",
		":lockAtMostForInterval", "'"+interval+"'", ":lockAtLeastForInterval", "'"+interval+"'",
		":lockAtMostForMicros", micros(d), ":lockAtLeastForMicros", micros(d),
	).Replace(statement)) > 0
}

func micros(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) }

// inserts is how ShedLock locks a name for the first time in a process.
func (j java) inserts(name string, atMost time.Duration) bool {
	j.Helper()
	if j.s.postgres {
		return j.exec("INSERT INTO shedlock(name, lock_until, locked_at, locked_by) VALUES(:name, timezone('utc', CURRENT_TIMESTAMP) + cast(:lockAtMostForInterval as interval), timezone('utc', CURRENT_TIMESTAMP), :lockedBy)"+
			" ON CONFLICT (name) DO UPDATE SET lock_until = timezone('utc', CURRENT_TIMESTAMP) + cast(:lockAtMostForInterval as interval), locked_at = timezone('utc', CURRENT_TIMESTAMP), locked_by = :lockedBy"+
			" WHERE shedlock.name = :name AND shedlock.lock_until <= timezone('utc', CURRENT_TIMESTAMP)", name, atMost)
	}
	return j.exec("INSERT IGNORE INTO shedlock(name, lock_until, locked_at, locked_by) VALUES(:name, TIMESTAMPADD(MICROSECOND, :lockAtMostForMicros, UTC_TIMESTAMP(3)), UTC_TIMESTAMP(3), :lockedBy)", name, atMost)
}

// updates is how it locks a name that it has inserted.
func (j java) updates(name string, atMost time.Duration) bool {
	j.Helper()
	if j.s.postgres {
		return j.exec("UPDATE shedlock SET lock_until = timezone('utc', CURRENT_TIMESTAMP) + cast(:lockAtMostForInterval as interval), locked_at = timezone('utc', CURRENT_TIMESTAMP), locked_by = :lockedBy"+
			" WHERE shedlock.name = :name AND shedlock.lock_until <= timezone('utc', CURRENT_TIMESTAMP)", name, atMost)
	}
	return j.exec("UPDATE shedlock SET lock_until = TIMESTAMPADD(MICROSECOND, :lockAtMostForMicros, UTC_TIMESTAMP(3)), locked_at = UTC_TIMESTAMP(3), locked_by = :lockedBy WHERE name = :name AND lock_until <= UTC_TIMESTAMP(3)", name, atMost)
}

// locks is both.
func (j java) locks(name string, atMost time.Duration) bool {
	j.Helper()
	return j.inserts(name, atMost) || j.updates(name, atMost)
}

// unlocks is how it releases.
func (j java) unlocks(name string, atLeast time.Duration) bool {
	j.Helper()
	if j.s.postgres {
		return j.exec("UPDATE shedlock SET lock_until = CASE WHEN locked_at + cast(:lockAtLeastForInterval as interval) > timezone('utc', CURRENT_TIMESTAMP) THEN locked_at + cast(:lockAtLeastForInterval as interval)"+
			" ELSE timezone('utc', CURRENT_TIMESTAMP) END WHERE name = :name AND locked_by = :lockedBy", name, atLeast)
	}
	return j.exec("UPDATE shedlock SET lock_until = IF (TIMESTAMPADD(MICROSECOND, :lockAtLeastForMicros, locked_at) > UTC_TIMESTAMP(3), TIMESTAMPADD(MICROSECOND, :lockAtLeastForMicros, locked_at), UTC_TIMESTAMP(3))"+
		" WHERE name = :name AND locked_by = :lockedBy", name, atLeast)
}

// extends is how its keep-alive renews.
func (j java) extends(name string, atMost time.Duration) bool {
	j.Helper()
	if j.s.postgres {
		return j.exec("UPDATE shedlock SET lock_until = timezone('utc', CURRENT_TIMESTAMP) + cast(:lockAtMostForInterval as interval) WHERE name = :name AND locked_by = :lockedBy AND lock_until > timezone('utc', CURRENT_TIMESTAMP)", name, atMost)
	}
	return j.exec("UPDATE shedlock SET lock_until = TIMESTAMPADD(MICROSECOND, :lockAtMostForMicros, UTC_TIMESTAMP(3)) WHERE name = :name AND locked_by = :lockedBy AND lock_until > UTC_TIMESTAMP(3)", name, atMost)
}

// count returns how many rows meet a condition, in which NOW is the clock as ShedLock reads it.
func (s *database) count(t *testing.T, condition string) (n int) {
	t.Helper()
	now := clockOfMariaDB
	if s.postgres {
		now = clockOfPostgres
	}
	condition = strings.NewReplacer("NOW", now, "MINUTE", map[bool]string{true: "interval '1 minute'", false: "interval 1 minute"}[s.postgres]).Replace(condition)
	if err := s.QueryRowContext(t.Context(), "select count(*) from shedlock where "+condition).Scan(&n); err != nil {
		t.Fatalf("%s: %v", condition, err)
	}
	return n
}

// What ShedLock holds keeps ours out, and the other way round; each releases its own alone, though ours calls itself by the host that
// ShedLock writes.
func TestForeignExclusion(t *testing.T) {
	both(t, func(t *testing.T, on opening) {
		s := on(t)
		a, j := storetest.Entered(t, opened(t, s), time.Hour), java{t, s, "host-1"}
		for _, name := range []string{"new", "old"} {
			if name == "old" && (!j.inserts(name, time.Hour) || !j.unlocks(name, 0)) {
				t.Fatal("ShedLock cannot lock a new name")
			}
			ours := mutex(name)
			a.Asks(ours, true)
			if j.inserts(name, time.Hour) || j.updates(name, time.Hour) {
				t.Fatalf("%s: two hold: ShedLock beside ours", name)
			}
			if j.unlocks(name, 0) || j.extends(name, 0) {
				t.Errorf("%s: ShedLock has released or renewed what ours holds", name)
			}
			a.Loses()
			a.Leaves(ours, true)
			if !j.updates(name, time.Hour) {
				t.Fatalf("%s: ShedLock does not get what ours has released", name)
			}

			denied, queued := mutex(name), mutex(name)
			queued.Queue = true
			if h := a.Asks(denied, false).Holder; h == nil || !h.Foreign || h.Note != "host-1" {
				t.Errorf("%s: in the way is %+v; want a foreign host-1", name, h)
			}
			a.Asks(queued, false)
			a.Leaves(ours, false)
			a.Leaves(denied, false)
			if s.count(t, "name = '"+name+"' and locked_by = 'host-1' and lock_until > NOW") != 1 {
				t.Fatalf("%s: ours has released what ShedLock holds", name)
			}
			if !j.extends(name, time.Hour) || !j.unlocks(name, 0) {
				t.Errorf("%s: ShedLock does not hold any more", name)
			}
			a.Awaits(queued)
			if j.locks(name, time.Hour) {
				t.Fatalf("%s: two hold: ShedLock beside ours, which had waited", name)
			}
			a.Leaves(queued, true)
		}
	})
}

// Who dies is let go by both, and neither touches who came next when it comes back.
func TestForeignDeath(t *testing.T) {
	both(t, func(t *testing.T, on opening) {
		s := on(t)
		d := opened(t, s)
		j := java{t, s, "host-1"}
		a, dead := storetest.Entered(t, d, time.Minute), storetest.Entered(t, d, time.Second)
		if !j.locks("job", time.Second) {
			t.Fatal("ShedLock cannot lock a new name")
		}
		ours := mutex("job")
		ours.Queue = true
		a.Asks(ours, false)
		a.Awaits(ours)
		if j.unlocks("job", 0) {
			t.Error("ShedLock has released what ours took after its end")
		}
		a.Loses()
		a.Leaves(ours, true)

		late := mutex("job")
		dead.Asks(late, true)
		storetest.Until(t, "ShedLock gets what nobody renews", func() bool { return j.updates("job", time.Minute) })
		dead.Leaves(mutex("job"), false)
		dead.Loses(late)
		dead.Leaves(late, false)
		if s.count(t, "locked_by = 'host-1' and lock_until > NOW") != 1 {
			t.Error("ours has released what ShedLock took after its end")
		}
	})
}

// A second release, of who has lost the lock or of a retry that comes late, frees nothing of who came next and shortens nothing, whether that is
// another one of ours or ShedLock, in its work or in the rest of its lockAtLeastFor.
func TestSecondRelease(t *testing.T) {
	both(t, func(t *testing.T, on opening) {
		s := on(t)
		w := wire.New(t, s.Addr())
		d := openedAt(t, s, w.Addr(), "timeout=1s")
		a, b, j := storetest.Entered(t, d, time.Hour), storetest.Entered(t, opened(t, s), time.Hour), java{t, s, "host-1"}
		stands := func(what, before string) {
			t.Helper()
			if got := s.everything(t); got != before {
				t.Errorf("%s: the table has %s, want %s", what, got, before)
			}
		}
		once := func(c driver.Claim) { // a release whose caller does not wait for the answer
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if was, err := a.Release(ctx, c); err == nil {
				t.Fatalf("an answer to what was held: %v", was)
			}
		}

		first, second, third := mutex("job"), mutex("job"), mutex("job")
		a.Asks(first, true)
		a.Leaves(first, true)
		for _, next := range []storetest.Actor{a, b} {
			c := mutex("job")
			next.Asks(c, true)
			before := s.everything(t)
			a.Leaves(first, false)
			stands("a second release", before)
			next.Leaves(c, true)
		}

		a.Asks(second, true)
		deliver := w.Hold(func(packet []byte) bool { return strings.Contains(string(packet), "set lock_until") })
		once(second)
		storetest.Until(t, "a second release is answered", func() bool { _, err := a.Release(t.Context(), second); return err == nil })
		if !j.updates("job", time.Hour) {
			t.Fatal("ShedLock does not get what ours has released")
		}
		arrives := func(what string) {
			t.Helper()
			before, arrived := s.everything(t), s.arrived(t)
			if !deliver() {
				t.Fatal("nothing was held")
			}
			storetest.Until(t, "the request has arrived", func() bool { return s.arrived(t) > arrived })
			stands(what, before)
		}
		arrives("the first release, which comes after the second, beside ShedLock")

		if !j.unlocks("job", 0) {
			t.Fatal("ShedLock does not hold any more")
		}
		a.Asks(third, true)
		deliver = w.Hold(func(packet []byte) bool { return strings.Contains(string(packet), "set lock_until") })
		once(third)
		s.must(t, "update shedlock set lock_until = locked_at") // it has ended meanwhile
		if !j.updates("job", time.Hour) || !j.unlocks("job", time.Hour) {
			t.Fatal("ShedLock does not get what has ended")
		}
		storetest.Until(t, "a second release is answered", func() bool { _, err := a.Release(t.Context(), third); return err == nil })
		arrives("a release of what has ended, beside the rest of lockAtLeastFor")
	})
}

// everything is what stands in the table.
func (s *database) everything(t *testing.T) (text string) {
	t.Helper()
	if err := s.QueryRowContext(t.Context(), "select concat(name, ' ', locked_at, ' ', lock_until, ' ', locked_by) from shedlock").Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

// A renewal that comes too late does not bring back what has expired, though nobody has taken it.
func TestWhatHasExpiredStaysSo(t *testing.T) {
	both(t, func(t *testing.T, on opening) {
		s := on(t)
		a, c := storetest.Entered(t, opened(t, s), 3*time.Second), mutex("job")
		a.Asks(c, true)
		storetest.Until(t, "its time is over", func() bool { return s.count(t, "lock_until <= NOW") == 1 })
		a.Loses(c)
		if _, err := a.Acquire(t.Context(), c); !errors.Is(err, driver.ErrGone) {
			t.Errorf("it answers %v; want ErrGone", err)
		}
		a.Leaves(c, false)
		a.Asks(mutex("job"), true)
	})
}

// The rest of lockAtLeastFor keeps ours out as it does any ShedLock.
func TestForeignLockAtLeastFor(t *testing.T) {
	both(t, func(t *testing.T, on opening) {
		s := on(t)
		a, j := storetest.Entered(t, opened(t, s), time.Minute), java{t, s, "host-1"}
		if !j.locks("job", time.Minute) || !j.unlocks("job", 4*time.Second) {
			t.Fatal("ShedLock cannot lock a new name")
		}
		s.must(t, "create table kept as select lock_until from shedlock")
		ours := mutex("job")
		ours.Queue = true
		a.Asks(ours, false)
		a.Awaits(ours)
		if s.count(t, "locked_at >= (select lock_until from kept)") != 1 {
			t.Error("ours got in before the rest of lockAtLeastFor was over")
		}
	})
}

// The time zone of a session is not that of the table, which is UTC.
func TestTimesAreUTC(t *testing.T) {
	both(t, func(t *testing.T, on opening) {
		var s *database
		var a storetest.Actor
		if s = on(t, zones[t.Name()]...); s.postgres {
			a = storetest.Entered(t, opened(t, s, "timezone=Asia/Tokyo"), 59*time.Second)
		} else {
			a = storetest.Entered(t, opened(t, s), 59*time.Second)
		}
		a.Asks(mutex("job"), true)
		if s.count(t, "locked_at <= NOW and lock_until > NOW and lock_until <= NOW + MINUTE") != 1 {
			t.Error("a lock of a minute does not end within one by UTC")
		}
		since := a.Line("job").Since
		if off := time.Since(since); off > time.Hour || off < -time.Hour {
			t.Errorf("it is shown to be held since %v", since)
		}
	})
}

var zones = map[string][]string{"TestTimesAreUTC/mariadb": {"--default-time-zone=+09:00"}}
