package redlock_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// record returns a field of what a master knows of itself.
func record(t *testing.T, s *servertest.Server, field string) string {
	t.Helper()
	return s.MustDo(t, "HGET", "il:{redlock}:member", field)
}

// met waits until the server that runs now was met as it is.
func met(t *testing.T, s *servertest.Server, try func()) {
	t.Helper()
	until(t, 30*time.Second, "met after it has restarted", func() bool {
		try()
		run := record(t, s, "run")
		return run != "" && strings.Contains(s.MustDo(t, "INFO", "server"), run)
	})
}

// replicate makes a server a replica of another one, and waits until it has its data.
func replicate(t *testing.T, replica, master *servertest.Server) {
	t.Helper()
	replica.MustDo(t, "REPLICAOF", "127.0.0.1", strings.TrimPrefix(master.Addr(), "127.0.0.1:"))
	until(t, 30*time.Second, "a replica", func() bool {
		info, err := replica.Do("INFO", "replication")
		return err == nil && strings.Contains(info, "master_link_status:up")
	})
}

// A master comes back as the replica of another one. It is no master then, and the others go on; when it is one again it has the
// other one's memory, so it takes its own place and waits.
func TestAMasterThatBecomesAReplicaCostsItsOwnVoteAlone(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	d := open(t, urlOf(addrs(set))+"?max_ttl=1s")
	s := session(t, d, time.Second)
	granted := func() bool {
		c := mutex("replica", false)
		g, err := s.Acquire(t.Context(), c)
		_, _ = s.Release(t.Context(), c)
		return err == nil && g.Held
	}
	if err := set[2].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	replicate(t, set[2], set[0])
	until(t, 30*time.Second, "seen to be a replica", func() bool {
		masters, err := d.Masters(t.Context())
		return err != nil || masters[2].Err != nil && strings.Contains(masters[2].Err.Error(), "is a slave of")
	})
	row := 0
	until(t, 30*time.Second, "granted by two masters while the third is a replica", func() bool {
		if row++; !granted() {
			row = 0
		}
		return row == 10
	})
	set[2].MustDo(t, "REPLICAOF", "NO", "ONE")
	until(t, 30*time.Second, "a master in its own place again", func() bool {
		return granted() && record(t, set[2], "id") != record(t, set[0], "id") && votes(t, set[2])
	})
	if record(t, set[2], "until") == "0" {
		t.Error("it had its vote without a wait, and has forgotten whom it was given to")
	}
}

// A master is made a copy of another one and a master again while nobody asks it anything. No server has restarted, and no connection
// has ended, and it has forgotten whom it was given to.
func TestACopyOfAnotherMasterHasNoVote(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	s := session(t, open(t, urlOf(addrs(set))), time.Minute)
	first := mutex("before", false)
	if _, err := acquire(t.Context(), s, first); err != nil {
		t.Fatal(err)
	}
	everywhere(t, set, "before") // and over a connection that lasts
	replicate(t, set[2], set[0])
	set[2].MustDo(t, "REPLICAOF", "NO", "ONE")
	c := mutex("after", false)
	if g, err := s.Acquire(t.Context(), c); err != nil || !g.Held {
		t.Fatalf("with two masters that are well: %+v, %v", g, err)
	}
	until(t, 30*time.Second, "found to be a copy", func() bool { return record(t, set[2], "id") != record(t, set[0], "id") })
	if votes(t, set[2]) || ours(t, set[2], "after") {
		t.Error("a master that has another one's memory gives itself to a claim")
	}
}

// Two of three masters synced their logs once a second when they went down, and sync always when they are back. What they were asked in
// the last second before is lost perhaps, so they wait.
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

// Two of three masters that keep everything have their logs turned off, and are back with them when they restart: with what they knew
// before that. A program that has looked in between has told the others, so they wait, and nobody is let in beside the holder.
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
	for _, one := range set[:2] {
		if err := one.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := one.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range set[:2] {
		met(t, one, func() {
			c := mutex("held", false)
			if g, err := other.Acquire(t.Context(), c); err == nil && g.Held {
				t.Error("two hold")
			}
			_, _ = other.Release(t.Context(), c)
		})
		if votes(t, one) {
			t.Error("a master whose log is older than its memory was votes as soon as it is back")
		}
	}
}

// All masters restart and have forgotten everything. Whoever ran before that knows that they are no new set, so they wait, and nobody is
// let in beside the holder.
func TestMastersThatAllForgetWait(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	s := session(t, open(t, urlOf(addrs(set))), time.Minute)
	if _, err := acquire(t.Context(), s, mutex("held", true)); err != nil {
		t.Fatal(err)
	}
	other := session(t, open(t, urlOf(addrs(set))), time.Minute)
	for _, one := range set {
		if err := one.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range set {
		if err := one.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range set {
		met(t, one, func() {
			c := mutex("held", false)
			if g, err := other.Acquire(t.Context(), c); err == nil && g.Held {
				t.Error("two hold")
			}
			_, _ = other.Release(t.Context(), c)
		})
		if votes(t, one) {
			t.Error("a master that has forgotten everything, as all have, votes as soon as it is back")
		}
	}
}

// A replica of a master that keeps everything takes its place. It keeps everything, and may lack what the master had not sent.
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

// kept are the arguments of a server that keeps all but its last second.
var kept = []string{"--appendonly", "yes", "--appendfsync", "everysec"}

// back waits until all masters have their votes, and a name is granted by them.
func back(t *testing.T, url string, set []*servertest.Server) {
	t.Helper()
	s := session(t, open(t, url), time.Second)
	until(t, 30*time.Second, "a vote of every master", func() bool {
		c := mutex("back", false)
		_, _ = s.Acquire(t.Context(), c)
		_, _ = s.Release(t.Context(), c)
		for _, one := range set {
			if !votes(t, one) {
				return false
			}
		}
		return true
	})
	until(t, 30*time.Second, "granted by them", func() bool {
		c := mutex("back", false)
		defer func() { _, _ = s.Release(t.Context(), c) }()
		g, err := s.Acquire(t.Context(), c)
		return err == nil && g.Held
	})
}

// again reports whether a name is granted, and sees that its token is above that of the grant before.
func again(t *testing.T, s driver.Session, name string, before driver.Grant) bool {
	t.Helper()
	c := mutex(name, false)
	defer func() { _, _ = s.Release(t.Context(), c) }()
	g, err := s.Acquire(t.Context(), c)
	if g.Held && g.Fence < before.Fence+driver.Stride {
		t.Errorf("token %d after %d", g.Fence, before.Fence)
	}
	return err == nil && g.Held
}

// Masters restart with their data, all but the last second of it: three of five, or all five one by one. No majority is left that surely
// remembers; when all have waited, all vote.
func TestAMajorityThatRestartsVotesAgain(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprintf("%d of 5", n), func(t *testing.T) {
			t.Parallel()
			set := startMasters(t, 5, kept...)
			url := urlOf(addrs(set)) + "?max_ttl=1s"
			s := session(t, open(t, url), time.Second)
			c := mutex("before", false)
			g, err := acquire(t.Context(), s, c)
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range set[:n] {
				if err := one.Restart(t.Context()); err != nil {
					t.Fatal(err)
				}
				met(t, one, func() { _, _ = s.Acquire(t.Context(), mutex("wakes", false)) })
			}
			back(t, url, set)
			_, _ = s.Release(t.Context(), c)
			until(t, 30*time.Second, "granted again to whoever held it before", func() bool { return again(t, s, "before", g) })
		})
	}
}

// Two of three masters restart empty. Nobody can tell what they knew, so a new set begins when the former one has not been used for long
// enough; programs that go on asking for it do not use it.
func TestAMajorityThatRestartsEmptyFoundsTheSetAnew(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	s := session(t, open(t, urlOf(addrs(set))+"?max_ttl=300ms"), 300*time.Millisecond)
	c := mutex("before", false)
	g, err := acquire(t.Context(), s, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range set[1:] {
		if err := one.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = s.Release(t.Context(), c)
	until(t, 30*time.Second, "granted in a new set", func() bool {
		_, _ = s.Renew(t.Context())
		return again(t, s, "before", g)
	})
}

// A master waits for its vote, and its clock is set back by an hour. It waits anew by the clock that it has, not for an hour.
func TestAClockThatIsSetBackKeepsNoMasterOut(t *testing.T) {
	t.Parallel()
	one, err := servertest.Start(t.Context(), servertest.Options{Clock: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = one.Close() })
	set := append(startMasters(t, 2), one)
	s := session(t, open(t, urlOf(addrs(set))+"?max_ttl=1s"), time.Second)
	if err := one.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	try := func() {
		c := mutex("back", false)
		_, _ = s.Acquire(t.Context(), c)
		_, _ = s.Release(t.Context(), c)
	}
	met(t, one, try)
	if err := one.Step(-time.Hour); err != nil {
		t.Fatal(err)
	}
	until(t, 30*time.Second, "a vote of the master whose clock was set back", func() bool { try(); return votes(t, one) })
}

// What survives a restart is known of masters that have said so.
func TestASilentMasterIsNotSaidToKeepAnything(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3, redistest.Durable...)
	if d := open(t, urlOf(addrs(set))); !d.Traits().Survives.Restart {
		t.Error("three masters that keep everything: want claims to survive a restart")
	}
	if err := set[1].Pause(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = set[1].Resume() }()
	if d := open(t, urlOf(addrs(set))); d.Traits().Survives.Restart {
		t.Error("one master of three has not answered, and claims are said to survive its restart")
	}
}

// A master restarts without its memory and takes a new place in the set. A program that has not heard of it finds that the others
// refuse it, looks, and asks once more.
func TestANewPlaceCostsNobodyATry(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	one, two := session(t, open(t, urlOf(addrs(set))), time.Minute), session(t, open(t, urlOf(addrs(set))), time.Minute)
	if err := set[0].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, 30*time.Second, "in a new place", func() bool {
		try := mutex("first", false)
		_, _ = one.Acquire(t.Context(), try)
		_, _ = one.Release(t.Context(), try)
		return record(t, set[1], "version") == "2" && record(t, set[2], "version") == "2"
	})
	if g, err := two.Acquire(t.Context(), mutex("second", false)); err != nil || !g.Held {
		t.Errorf("the first try of another program: %+v, %v: want it held by the two that vote", g, err)
	}
}

// All masters answer, and two of them refuse: that is said.
func TestWhoRefusesHasAnswered(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	s := session(t, open(t, urlOf(addrs(set))), time.Minute)
	for _, one := range set[1:] {
		one.MustDo(t, "FLUSHALL")
	}
	_, err := s.Acquire(t.Context(), mutex("refused", false))
	if want := "3 of 3 masters answered, and 2 of these refused, want 2 or more that do not"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("two of three masters were emptied by hand: %v, want %q", err, want)
	}
}

// wakes has a claim come and go, so that masters are asked for their votes.
func wakes(t *testing.T, s driver.Session) {
	t.Helper()
	c := mutex("wakes", false)
	_, _ = s.Acquire(t.Context(), c)
	_, _ = s.Release(t.Context(), c)
}

// A master that keeps everything has a replica, which is started again as a master from the log that it has, at the master's address.
// Nothing that it says of itself tells that this was a copy, which may lack what the master had not sent. So a master with a replica
// counts as one that forgets: it is looked for again and again, since a replica comes when it likes.
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

// A server starts from a snapshot that is older than what it answered last, and its log is switched on then: it says that it keeps
// everything, and it did when the snapshot was made.
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
