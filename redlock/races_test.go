package redlock_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver/drivertest/wire"
)

// Contenders with one driver each take turns, and their tokens grow.
func TestCrowd(t *testing.T) {
	set := startMasters(t, 5)
	for _, turn := range []bool{true, false} {
		drivers, j := crowd(t, 8, 400, func(int) string { return urlOf(addrs(set)) }, 15*time.Second, turn, nil)
		t.Logf("turn %v: longest wait %v, %+v", turn, j.longest, total(drivers))
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
	const ttl = 15 * time.Second
	drivers, j := crowd(t, 8, 200, slow, ttl, false, think)
	t.Logf("longest wait %v, %+v", j.longest, total(drivers))
	if j.longest > ttl/2 {
		t.Errorf("one waited %v of a TTL of %v: it stood still", j.longest, ttl)
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
	until(t, 30*time.Second, "taken by the elder", func() bool { return ours(t, set[0], "split") })
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

// A master is stopped while contenders take turns. Each waits for it in vain once or twice, not at every turn: only until it
// is seen to be late.
func TestTurnsGoOnWithoutAMasterThatIsLate(t *testing.T) {
	const contenders, before, turns = 4, 50, 200
	set := startMasters(t, 5)
	defer func() { _ = set[4].Resume() }()
	grants := 0
	drivers, _ := crowd(t, contenders, turns, func(int) string { return urlOf(addrs(set)) + "?node_timeout=90s" }, time.Minute, true, func() {
		if grants++; grants == before {
			if err := set[4].Pause(); err != nil {
				t.Error(err)
			}
		}
	})
	vain := int64(0)
	for _, d := range drivers {
		vain += d.Vain()[4]
	}
	t.Logf("%d turns waited in vain %d times", turns-before, vain)
	if vain > (turns-before)/3 {
		t.Errorf("%d turns waited %d times while a master was silent, want %d times at most: somebody waits for it at every turn", turns-before, vain, (turns-before)/3)
	}
}

// The masters take no writes when the holder leaves, for want of replicas. The one behind it must not hear of a grant that no
// master can write, and is let in when they can.
func TestNobodyHearsOfAGrantThatIsNotWritten(t *testing.T) {
	set := startMasters(t, 3)
	url := urlOf(addrs(set))
	holder, waiter := session(t, open(t, url), 30*time.Second), session(t, open(t, url), 30*time.Second)
	first, next := mutex("refused", true), mutex("refused", true)
	if g, err := holder.Acquire(t.Context(), first); !g.Held || err != nil {
		t.Fatalf("a free name: %+v, %v", g, err)
	}
	if g, err := waiter.Acquire(t.Context(), next); g.Held || err != nil {
		t.Fatalf("behind a holder: %+v, %v", g, err)
	}
	replicas := func(want string) {
		for _, server := range set {
			server.MustDo(t, "CONFIG", "SET", "min-replicas-to-write", want)
		}
	}
	replicas("1")
	if held, err := holder.Release(t.Context(), first); err == nil {
		t.Errorf("a release that hands on where nothing can be written: held %v and no error", held)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	g, err := waiter.Wait(ctx, next)
	cancel()
	if g.Held {
		t.Errorf("granted with token %d, %v, although no master could write it", g.Fence, err)
	}
	replicas("0")
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := acquire(ctx, waiter, next); err != nil {
		t.Errorf("when the masters can write again: %v", err)
	}
}
