package redlock_test

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
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

// A master comes back as the replica of another one. It is no master then, and the others go on;
// when it is one again it has the other one's memory, so it takes its own place and waits.
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
		if errors.Is(err, driver.ErrRefused) {
			t.Fatalf("a replica among them costs all masters their votes: %v", err)
		}
		return masters[2].Err != nil && strings.Contains(masters[2].Err.Error(), "is a slave of")
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

// A master is made a copy of another one and a master again while nobody asks it anything. No
// server has restarted, and no connection has ended, and it has forgotten whom it was given to.
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

// again reports whether a name is granted, and sees that its token is above that of the grant
// before.
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

// Masters restart with their data, all but the last second of it: three of five, or all five one by
// one. No majority is left that surely remembers; when all have waited, all vote.
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

// Two of three masters restart empty. Nobody can tell what they knew, so a new set begins when the
// former one has not been used for long enough; programs that go on asking for it do not use it.
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

// A master waits for its vote, and its clock is set back by an hour. It waits anew by the clock
// that it has, not for an hour.
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

// A master restarts without its memory and takes a new place in the set. A program that has not
// heard of it finds that the others refuse it, looks, and asks once more.
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

// A master that has lost its memory has no vote for as long as a lease may last that it forgot, and
// a fiftieth more for clocks that drift.
func TestAMasterThatForgotWaitsForTheLongestLease(t *testing.T) {
	t.Parallel()
	const longest = 50 * time.Second
	set := startMasters(t, 3)
	s := session(t, open(t, urlOf(addrs(set))+"?max_ttl=50s"), longest)
	before := time.Now() // all of them have this machine's clock
	if err := set[2].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	met(t, set[2], func() {
		c := mutex("forgot", false)
		_, _ = s.Acquire(t.Context(), c)
		_, _ = s.Release(t.Context(), c)
	})
	ms, err := strconv.ParseInt(record(t, set[2], "until"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if wait := time.UnixMilli(ms).Sub(before); votes(t, set[2]) || wait < longest+longest/50 {
		t.Errorf("a master that forgot leases of up to %v waits for %v since before it restarted, want %v at least; it has its vote: %t",
			longest, wait, longest+longest/50, votes(t, set[2]))
	}
}

// A program sees that a master has no vote, and tells it to wait. That arrives when the master has
// got its vote meanwhile, as by a program that was faster: it is told nothing then, and keeps its
// vote.
func TestAMasterThatWasSeenBeforeItGotItsVoteKeepsIt(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	d, wires := wired(t, set, endless)
	s := session(t, d, endlessTTL)
	vote := set[2].MustDo(t, "GET", "il:{redlock}:vote")
	var told atomic.Bool
	deliver := wires[2].Hold(func(request []byte) bool {
		is := bytes.Contains(request, []byte("\r\nwait\r\n"))
		told.Store(told.Load() || is)
		return is
	})
	defer deliver()
	set[2].MustDo(t, "HSET", "il:{redlock}:member", "until", strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10))
	set[2].MustDo(t, "DEL", "il:{redlock}:vote")
	until(t, 30*time.Second, "told to wait", func() bool {
		_ = tried(t, s)
		return told.Load()
	})
	set[2].MustDo(t, "HSET", "il:{redlock}:member", "until", "0")
	set[2].MustDo(t, "SET", "il:{redlock}:vote", vote)
	deliver()
	masters, err := d.Masters(t.Context()) // after what is under way
	if err != nil || masters[2].Err != nil || !votes(t, set[2]) {
		t.Errorf("a master that had its vote when it was told to wait: %v, %v", err, masters[2].Err)
	}
}
