package redlock_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// Two of three masters synced their logs once a second when they went down, and sync always when
// they are back. What they were asked in the last second before is lost perhaps, so they wait.
func TestAMasterThatKeptTooLittleWaits(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3, redistest.Durable...)
	for _, one := range set[:2] {
		one.MustDo(t, "CONFIG", "SET", "appendfsync", "everysec") // until it restarts
	}
	s := session(t, open(t, urlOf(addrs(set))), time.Minute)
	for _, one := range set[:2] {
		if err := one.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range set[:2] {
		met(t, one, func() {
			c := mutex("kept", false)
			_, _ = s.Acquire(t.Context(), c)
			_, _ = s.Release(t.Context(), c)
		})
		if votes(t, one) {
			t.Error("a master that synced once a second votes as soon as it is back")
		}
	}
}

// nobodyBeside restarts masters after a crash of all of them, and wants them to wait and nobody let
// in beside who holds the name held.
func nobodyBeside(t *testing.T, other driver.Session, masters []*servertest.Server, wrong string) {
	t.Helper()
	for _, one := range masters {
		if err := one.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range masters {
		if err := one.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range masters {
		met(t, one, func() {
			c := mutex("held", false)
			if g, err := other.Acquire(t.Context(), c); err == nil && g.Held {
				t.Error("two hold")
			}
			_, _ = other.Release(t.Context(), c)
		})
		if votes(t, one) {
			t.Error(wrong)
		}
	}
}

// Two of three masters that keep everything have their logs turned off, and are back with them when
// they restart: with what they knew before that. A program that has looked in between has told the
// others, so they wait, and nobody is let in beside the holder.
func TestAMasterWhoseLogWasTurnedOffWaits(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3, redistest.Durable...)
	s := session(t, open(t, urlOf(addrs(set))), time.Minute)
	for _, one := range set[:2] {
		one.MustDo(t, "CONFIG", "SET", "appendonly", "no") // until it restarts
	}
	other := session(t, open(t, urlOf(addrs(set))), time.Minute)
	if _, err := acquire(t.Context(), s, mutex("held", true)); err != nil {
		t.Fatal(err)
	}
	nobodyBeside(t, other, set[:2], "a master whose log is older than its memory was votes as soon as it is back")
}

// All masters restart and have forgotten everything. Whoever ran before that knows that they are no
// new set, so they wait, and nobody is let in beside the holder.
func TestMastersThatAllForgetWait(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	s := session(t, open(t, urlOf(addrs(set))), time.Minute)
	if _, err := acquire(t.Context(), s, mutex("held", true)); err != nil {
		t.Fatal(err)
	}
	other := session(t, open(t, urlOf(addrs(set))), time.Minute)
	nobodyBeside(t, other, set, "a master that has forgotten everything, as all have, votes as soon as it is back")
}

// A replica of a master that keeps everything takes its place. It keeps everything, and may lack
// what the master had not sent.
func TestAPromotedReplicaWaits(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3, redistest.Durable...)
	d, wires := wired(t, set, "")
	s := session(t, d, time.Minute)
	replica := servertest.Redis(t, redistest.Durable...)
	replicate(t, replica, set[2])
	replica.MustDo(t, "REPLICAOF", "NO", "ONE")
	wires[2].Redirect(replica.Addr())
	wires[2].Cut()
	met(t, replica, func() {
		c := mutex("promoted", false)
		_, _ = s.Acquire(t.Context(), c)
		_, _ = s.Release(t.Context(), c)
	})
	if votes(t, replica) {
		t.Error("a replica that was promoted votes as soon as it is met")
	}
}

// wakes has a claim come and go, so that masters are asked for their votes.
func wakes(t *testing.T, s driver.Session) {
	t.Helper()
	c := mutex("wakes", false)
	_, _ = s.Acquire(t.Context(), c)
	_, _ = s.Release(t.Context(), c)
}

// A master that keeps everything has a replica, which is started again as a master from the log
// that it has, at the master's address. Nothing that it says of itself tells that this was a copy,
// which may lack what the master had not sent. So a master with a replica counts as one that
// forgets: it is looked for again and again, since a replica comes when it likes.
func TestTheCopyOfAReplicaWaits(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3, redistest.Durable...)
	d, wires := wired(t, set, "?max_ttl=1s")
	s := session(t, d, time.Second)
	replica := servertest.Redis(t, redistest.Durable...)
	replicate(t, replica, set[2])
	until(t, 30*time.Second, "known to the master that it has a replica", func() bool {
		wakes(t, s)
		return record(t, set[2], "durable") == "0"
	})
	until(t, 30*time.Second, "known to the replica", func() bool { return record(t, replica, "durable") == "0" })
	if err := replica.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if info := replica.MustDo(t, "INFO", "replication"); !strings.Contains(info, "role:master") || !strings.Contains(info, "master_replid2:00000000") {
		t.Fatalf("it says that it was a replica, and this shows nothing: %s", info)
	}
	wires[2].Redirect(replica.Addr())
	wires[2].Cut()
	met(t, replica, func() { wakes(t, s) })
	if record(t, replica, "until") == "0" {
		t.Error("a replica that was started as a master from its log has its vote without a wait")
	}
}

// A server starts from a snapshot that is older than what it answered last, and its log is switched
// on then: it says that it keeps everything, and it did when the snapshot was made.
func TestALogThatWasSwitchedOnAfterTheStartIsNoMemory(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3, redistest.Durable...)
	d, wires := wired(t, set, "?max_ttl=1s")
	s := session(t, d, time.Second)
	set[2].MustDo(t, "SAVE")
	snapshot, err := os.ReadFile(filepath.Join(set[2].Dir(), "dump.rdb"))
	if err != nil {
		t.Fatal(err)
	}
	old := servertest.Redis(t)
	if err := os.WriteFile(filepath.Join(old.Dir(), "dump.rdb"), snapshot, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := old.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if record(t, old, "durable") != "1" {
		t.Fatal("the snapshot does not say that it was made by a server that keeps everything, and this shows nothing")
	}
	old.MustDo(t, "CONFIG", "SET", "appendfsync", "always")
	old.MustDo(t, "CONFIG", "SET", "appendonly", "yes")
	until(t, 30*time.Second, "written to a log", func() bool {
		info := old.MustDo(t, "INFO", "persistence")
		return strings.Contains(info, "aof_enabled:1") && strings.Contains(info, "aof_rewrite_in_progress:0") && strings.Contains(info, "aof_last_bgrewrite_status:ok")
	})
	wires[2].Redirect(old.Addr())
	wires[2].Cut()
	met(t, old, func() { wakes(t, s) })
	if record(t, old, "until") == "0" {
		t.Error("a server that started from a snapshot has its vote without a wait, since its log was switched on by then")
	}
}
