package redlock_test

import (
	"strconv"
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
