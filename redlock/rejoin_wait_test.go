package redlock_test

import (
	"bytes"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// A master that has lost its memory has no vote for as long as a lease may last that it forgot, and a fiftieth more for clocks that drift.
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

// A program sees that a master has no vote, and tells it to wait. That arrives when the master has got its vote meanwhile, as by a program
// that was faster: it is told nothing then, and keeps its vote.
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
