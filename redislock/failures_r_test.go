package redislock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// R1: a failover loses a lock that the replica had not yet received, and counters with it. Others
// get in: no lock of one Redis can prevent that. The holder is told by its next renewal, and no
// token is drawn twice.
func TestR01_AFailoverLosesALockAndNoToken(t *testing.T) {
	t.Parallel()
	s := servertest.Sentinel(t)
	a, b := open(t, s.URL(), ttl(6*time.Second)), open(t, s.URL(), ttl(6*time.Second))
	const counter = "il:{m}:fence:m"
	for range 20 { // over connections that both keep, until the counter is one that the replica has heard of
		release(t, hold(t, a.Mutex("m")), hold(t, b.Mutex("n")))
		release(t, hold(t, b.Mutex("m")))
	}
	eventually(t, "the replica has the counter", func() bool {
		return s.Replica.MustDo(t, "GET", counter) == s.Master.MustDo(t, "GET", counter)
	})

	// From here on the replica learns nothing.
	s.Master.MustDo(t, "ACL", "SETUSER", "default", "-psync", "-sync")
	s.Master.MustDo(t, "CLIENT", "KILL", "TYPE", "replica")
	last := uint64(0)
	for range 5 {
		l := hold(t, a.Mutex("m"))
		last = grows(t, "before the failover", last, l)
		release(t, l)
	}
	lease := hold(t, a.Mutex("m"))
	last = grows(t, "before the failover", last, lease)
	if err := s.Failover(t.Context()); err != nil {
		t.Fatal(err)
	}

	for range 8 {
		l := hold(t, b.Mutex("m"))
		last = grows(t, "after the failover", last, l)
		release(t, l)
	}
	told(t, lease)
	grows(t, "the former holder's next", last, hold(t, a.Mutex("m")))
}

// R1: a master that comes back grants for a moment, until it hears that another one has taken its
// place. Both grant then, over connections that are as old as may be, and each draws tokens above
// those that the other has drawn before, as far as the servers' clocks tell before from after.
func TestR01_TwoMastersForAMoment(t *testing.T) {
	t.Parallel()
	servers := []*servertest.Server{servertest.Redis(t), servertest.Redis(t)}
	clients := []*interlock.Client{open(t, servers[0].URL(), nil), open(t, servers[1].URL(), nil)}
	last := uint64(0)
	for i := range 20 {
		l := hold(t, clients[i%2].Mutex("m"))
		last = grows(t, "of one after the other", last, l)
		release(t, l)
		eventually(t, "the clock has passed the tokens", func() bool {
			var seconds, micros uint64
			_, _ = fmt.Sscan(servers[i%2].MustDo(t, "TIME"), &seconds, &micros)
			return seconds*1e6+micros > last+64
		})
	}
}

// R5: a server that keeps nothing on disk restarts and forgets who holds. The holder is told, and
// tokens go on growing.
func TestR05_ARestartLosesALockAndNoToken(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"stopped", "killed"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := servertest.Redis(t)
			a, b := open(t, s.URL(), ttl(6*time.Second)), open(t, s.URL(), ttl(6*time.Second))
			lease := hold(t, a.Mutex("m"))
			last := lease.Fence()
			if how == "killed" {
				if err := s.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			start := time.Now()
			if err := s.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			l := hold(t, b.Mutex("m"))
			last = grows(t, "after the restart", last, l)
			release(t, l)
			if d := told(t, lease).Sub(start); d > 4*time.Second && !testing.Short() {
				t.Errorf("the holder was told after %v, want its next renewal after at most 2s", d)
			}
			grows(t, "the former holder's next", last, hold(t, a.Mutex("m")))
		})
	}
}

// R5: a server that logs every write keeps a lock although it is killed.
func TestR05_AKilledServerWithALogKeepsLocks(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t, redistest.Durable...)
	a, b := open(t, s.URL(), ttl(ample)), open(t, s.URL(), ttl(ample))
	lease := hold(t, a.Mutex("m"))
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	granted := asking(t.Context(), b.Mutex("m"))
	waitsFor(t, s, "m", 1)
	if err := lease.Err(); err != nil || len(granted) > 0 {
		t.Errorf("after the restart the lease has %v, and %d others got in", err, len(granted))
	}
	release(t, lease)
	grows(t, "after the restart", lease.Fence(), get(t, granted).Lease)
}

// R6: another program deletes the lock. The holder is told within a third of the TTL, whoever waits
// is let in by itself, and tokens go on growing although the counter may be gone as well.
func TestR06_AnotherProgramDeletesTheLock(t *testing.T) {
	t.Parallel()
	for what, words := range map[string][]string{
		"FLUSHALL": {"FLUSHALL"}, "FLUSHDB": {"FLUSHDB"}, "DEL": {"DEL", "m"}, "UNLINK": {"UNLINK", "m"},
		"SWAPDB": {"SWAPDB", "0", "1"}, "SET": {"SET", "m", "mine", "PX", "100"}, "EXPIRE": {"EXPIRE", "m", "0"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := servertest.Redis(t)
			a, b := open(t, s.URL(), ttl(3*time.Second)), open(t, s.URL(), ttl(3*time.Second))
			lease := hold(t, a.Mutex("m"))
			waiting := asking(t.Context(), b.Mutex("m"))
			waitsFor(t, s, "m", 1)
			start := time.Now()
			s.MustDo(t, words...)
			if d := told(t, lease).Sub(start); d > 2*time.Second && !testing.Short() {
				t.Errorf("the holder was told after %v, want a third of the TTL of 3s", d)
			}
			next := get(t, waiting)
			last := grows(t, "whoever waited", lease.Fence(), next.Lease)
			release(t, next.Lease)
			grows(t, "the former holder's next", last, hold(t, a.Mutex("m")))
		})
	}
}

// R16: a command of another client keeps the server busy for longer than a lease. The holder is
// told while the server is still silent, and only after that somebody gets in.
func TestR16_ASlowCommandOfAnotherClient(t *testing.T) {
	if testing.Short() {
		t.Skip("a margin in time: make proof")
	}
	t.Parallel()
	for what, words := range map[string][]string{
		"DEBUG SLEEP": {"DEBUG", "SLEEP", "3"},
		"a script":    {"EVAL", spin, "0", "3"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := servertest.Redis(t, "--busy-reply-threshold", "500")
			// Without the time between two renewals the server could be silent only after a trust
			// that it has extended.
			a := open(t, s.URL(), ttl(1500*time.Millisecond))
			b := open(t, s.URL(), &interlock.Options{TTL: 1500 * time.Millisecond, Patience: time.Hour})
			lease := hold(t, a.Mutex("m"))
			waiting := asking(t.Context(), b.Mutex("m"))
			waitsFor(t, s, "m", 1)
			over := make(chan time.Time, 1)
			go func() {
				_, _ = s.Do(words...)
				over <- time.Now()
			}()
			at := told(t, lease)
			next := get(t, waiting)
			if !at.Before(next.at) {
				t.Errorf("the next got in %v before the holder was told", at.Sub(next.at))
			}
			if end := <-over; !at.Before(end) {
				t.Errorf("the holder was told %v after the server answered again", at.Sub(end))
			}
			grows(t, what, lease.Fence(), next.Lease)
			release(t, next.Lease)
		})
	}
}

// spin is a script that lasts for some seconds.
const spin = `
local function now() local t = redis.call('TIME') return t[1] + t[2] / 1000000 end
local stop = now() + ARGV[1]
while now() < stop do end
return 1`

// R3: a server that may throw keys away throws locks away first, since they have an end. It is said
// at open; the holder is told by its next renewal, and the token goes on growing.
func TestR03_Eviction(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"volatile-lru", "allkeys-random"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			s := servertest.Redis(t, "--maxmemory", "4mb", "--maxmemory-policy", policy)
			a, b := open(t, s.URL(), ttl(9*time.Second)), open(t, s.URL(), ttl(9*time.Second))
			lease := hold(t, a.Mutex("m"))
			var seen time.Time // last, so that it was evicted after that
			for i := 0; ; i++ {
				at := time.Now()
				if s.MustDo(t, "EXISTS", "m") != "1" {
					break
				}
				seen = at
				if _, err := s.Do("SET", fmt.Sprint("data:", i), string(make([]byte, 20_000))); err != nil && i > 1000 {
					t.Fatalf("the server is full and still has the lock: %v", err)
				}
			}
			at := told(t, lease)
			if d := at.Sub(seen); d > 6*time.Second && !testing.Short() {
				t.Errorf("the holder was told %v after the lock was last seen, want a third of the TTL of 9s", d)
			}
			s.MustDo(t, "CONFIG", "SET", "maxmemory", "0")
			grows(t, "after the eviction", lease.Fence(), hold(t, b.Mutex("m")))
		})
	}
}
