package mysqllock_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
	"github.com/interlock-go/interlock/mysqllock"
)

// A proxy that hands a client's statements to connections that all share: what was taken by one is
// given back, or lost, by another.
func TestS02_TheConnectionIsSwapped(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	w := wire.New(t, s.Addr())
	a, mine := user(t, strings.Replace(bySession(s), s.Addr(), w.Addr(), 1)), mutex("swapped")
	asks(t, a, mine, true)
	id := fmt.Sprint(ask[int](t, s, "select is_used_lock('interlock_:test/swapped')"))
	var swaps atomic.Bool
	w.Drop(func(way wire.Direction, packet []byte) bool {
		if i := bytes.Index(packet, append([]byte{byte(len(id))}, id...)); way == wire.Replies && i >= 0 && swaps.CompareAndSwap(true, false) {
			copy(packet[i+1:], "99999999"[:len(id)]) // what another connection would answer
		}
		return false
	})
	swaps.Store(true)
	if r, err := a.Renew(t.Context()); err != nil || len(r.Lost) != 1 || r.Lost[0].ID != mine.ID {
		t.Errorf("Renew over another connection: %+v, %v; want that the claim is lost", r, err)
	}
}

func TestS08_AConnectionOfASessionEnds(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	storetest.ConnectionEnds(t, bySession(s), func() { execute(t, s, "kill is_used_lock('interlock_:test/at_once')") })
}

// Who gives up waiting in the moment in which the lock is handed over leaves nothing behind.
func TestS06_AWaitOfASessionIsGivenUp(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	free := byHand(t, s)
	storetest.GivesUp(t, bySession(s), "given_up", 60, 50*time.Microsecond, func() int {
		if free("select get_lock('interlock_:test/given_up', 20)") != 1 {
			return 1
		}
		free("select release_lock('interlock_:test/given_up')")
		return 0
	})
}

// A wait is cancelled by the name of its connection's own lock: where that has ended, and its
// number is another one's by now, nothing is.
func TestS06_ACancelHitsNobodyElse(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	d, err := driver.OpenURL(t.Context(), bySession(s))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(t.Context())
	stranger, err := pool(t, s.URL()).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var id string
	if err := stranger.QueryRowContext(t.Context(), "select connection_id()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	if err := mysqllock.Cancel(t.Context(), d, id); err != nil {
		t.Errorf("a connection that has ended is cancelled: %v", err)
	}
	if err := stranger.PingContext(t.Context()); err != nil {
		t.Errorf("the connection of a stranger was killed: %v", err)
	}
}

// A wait that somebody ends from outside, as by KILL QUERY, is told as lost, and has nothing.
func TestS07_AWaitIsEndedFromOutside(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	a, b := user(t, bySession(s)), user(t, bySession(s))
	mine, next := mutex("ended"), mutex("ended")
	asks(t, a, mine, true)
	asks(t, b, next, false)
	execute(t, s, fmt.Sprintf("kill query %d", ask[int](t, s, "select id from information_schema.processlist where state = 'User lock'")))
	told(t, b, next)
	if _, err := b.Wait(t.Context(), next); !errors.Is(err, driver.ErrGone) {
		t.Errorf("Wait: %v; want that it is gone", err)
	}
	leaves(t, a, mine, true)
	third := mutex("ended")
	asks(t, b, third, true)
	leaves(t, b, third, true)
}

// Tokens grow over a crash of the server, with a sequence and without.
func TestS16S17_TokensOfSessionsGrow(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	last := uint64(0)
	for i := range 4 {
		a, b, mine, next := user(t, bySession(s)), user(t, bySession(s)), mutex("tokens"), mutex("tokens")
		g := asks(t, a, mine, true)
		asks(t, b, next, false)
		if g.Fence < last+driver.Stride {
			t.Errorf("token %d after %d", g.Fence, last)
		}
		last = g.Fence
		if i > 1 {
			leaves(t, a, mine, true)
			if g = awaits(t, b, next); g.Fence < last+driver.Stride {
				t.Errorf("token %d of who waited, after %d", g.Fence, last)
			}
			last = g.Fence
			leaves(t, b, next, true)
		} else if err := errors.Join(s.Kill(), s.Restart(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
}

func TestS04_ASessionIsNotRenewed(t *testing.T) {
	t.Parallel()
	storetest.NotRenewed(t, bySession(migrated(t)))
}

func TestS07_ARenewalIsLeftRunning(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	storetest.RenewalUnanswered(t, s, bySession(s))
}

// Names of any length and kind have a key that both servers take as it is, and no two have the
// same.
func TestS14_KeysOfNames(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	d, err := driver.OpenURL(t.Context(), bySession(s))
	if err != nil {
		t.Fatal(err)
	}
	a, err := session(t, d, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	long := strings.Repeat("x", 1000)
	for _, name := range []string{long + "1", long + "2", "job", "Job", "JOB", "ä", "Ä", "a ", "a", "a\x00", "a'\\", "\xff\xfe", "#", "interlock_#a"} {
		key := d.(driver.Keyer).Key(name)
		if other, known := seen[key]; known || len(key) > 64 || strings.ToLower(key) != key {
			t.Errorf("the key of %q is %q; %q has it, too: %v", name, key, other, known)
		}
		seen[key] = name
		if g, err := a.Acquire(t.Context(), tries(name)); err != nil || !g.Held {
			t.Errorf("a name of %d bytes that nobody has: held %v, %v", len(name), g.Held, err)
		}
	}
}

// A server before MySQL 5.7 gives back a lock for the next one, and one of a group has locks that
// the others have, too. Neither is to be had here, so the questions are changed on their way.
func TestS13S15_ServersWithoutSuchLocks(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for _, of := range []struct{ asked, changed, says string }{
		{"is_used_lock('interlock-", "is_used_lock('jnterlock-", "want MySQL 5.7"}, // a lock that is not there any more
		{"'group_replication_group_name'", "'version_comment'             ", "the others of the group would give it once more"},
	} {
		w := wire.New(t, s.Addr())
		w.Drop(func(way wire.Direction, packet []byte) bool {
			if i := bytes.Index(packet, []byte(of.asked)); way == wire.Requests && i >= 0 {
				copy(packet[i:], of.changed)
			}
			return false
		})
		if _, err := enter(t, strings.Replace(bySession(s), s.Addr(), w.Addr(), 1), time.Minute); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), of.says) {
			t.Errorf("%s: %v; want that it is refused: %s", of.asked, err, of.says)
		}
	}
	galera := servertest.MariaDB(t, "--wsrep-on=ON")
	if _, err := enter(t, bySession(galera), time.Minute); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "Galera") {
		t.Errorf("a node of a Galera cluster: %v", err)
	}
}
