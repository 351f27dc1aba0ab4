package redlock_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/wire"
)

// Contenders with one driver each take turns, and their tokens grow. Since the one that leaves offers all masters the same
// counter, few grants must write theirs back.
func TestCrowd(t *testing.T) {
	set := startMasters(t, 5)
	for _, turn := range []bool{true, false} {
		drivers, j := crowd(t, 8, func(int) string { return urlOf(addrs(set)) }, 5*time.Second, 1500*time.Millisecond, turn, nil)
		sum := total(drivers)
		t.Logf("turn %v: %d grants, longest wait %v, %+v", turn, j.grants, j.longest, sum)
		if j.grants < 100 {
			t.Errorf("turn %v: %d grants in 1.5 s", turn, j.grants)
		}
		if sum.Raises*5 > sum.Grants {
			t.Errorf("turn %v: %d of %d grants wrote their token back, want far less than a fifth", turn, sum.Raises, sum.Grants)
		}
	}
}

// Claims that reach the masters in different orders split them. They must step back for the oldest, or all wait until their
// time is over.
func TestSplit(t *testing.T) {
	set := startMasters(t, 5)
	slow := func(int) string {
		var all []string
		for _, s := range set {
			w := wire.New(t, s.Addr())
			w.Delay(0, 2*time.Millisecond)
			all = append(all, w.Addr())
		}
		return urlOf(all)
	}
	think := func() {
		timer := time.NewTimer(rand.N(4 * time.Millisecond))
		<-timer.C
	}
	drivers, j := crowd(t, 8, slow, 10*time.Second, 3*time.Second, false, think)
	t.Logf("%d grants, longest wait %v, %+v", j.grants, j.longest, total(drivers))
	if j.grants < 60 {
		t.Errorf("%d grants in 3 s: they stood still", j.grants)
	}
	if j.longest > 2*time.Second {
		t.Errorf("one waited %v", j.longest)
	}
}

// Two claims have a master each of the two that are left, and wait for each other's. The newer one steps back, or both wait
// until their time is over.
func TestNewerOneStepsBack(t *testing.T) {
	set := startMasters(t, 3)
	late, wires := wired(t, set, "?node_timeout=10s")
	elder := session(t, late, time.Minute)
	younger := session(t, open(t, urlOf(addrs(set))), time.Minute)
	occupy(t, "split", set[2])
	heal := wires[1].Stall(wire.Both)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	got := make(chan error, 1)
	go func() {
		_, err := acquire(ctx, elder, mutex("split", true))
		got <- err
	}()
	until(t, 10*time.Second, "taken by the elder", func() bool { return ours(t, set[0], "split") })
	if g, err := younger.Acquire(t.Context(), mutex("split", true)); g.Held || err != nil {
		t.Fatalf("with one master of three: %+v, %v", g, err)
	}
	if !ours(t, set[1], "split") {
		t.Fatal("the younger has no master: nothing is shown")
	}
	heal()
	if err := <-got; err != nil {
		t.Errorf("the elder was not let in: %v", err)
	}
}
