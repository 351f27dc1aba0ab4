package redlock_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redlock"
)

// A race is contenders with a driver each that take turns at one name without a pause. It counts
// from when everybody has had a first turn, so that all stand in line, until everybody has had some
// more. What it measures are proportions: a machine that has other things to do makes all of it
// slow.
type race struct {
	judge judge
	skew  time.Duration // of the first contender's clock

	mu     sync.Mutex
	grants int             // so far
	turns  []int           // of each contender
	waits  []time.Duration // of each turn that began when it counted
	passed []int           // others that were granted during it
	counts bool
	sum    redlock.Stats // since then
}

// run has n contenders take turns until each has had that many of those that count, all of them
// within a limit.
func (r *race) run(t *testing.T, n, turns int, url string, think func()) {
	t.Helper()
	r.judge.t, r.turns = t, make([]int, n)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	drivers := make([]*redlock.Driver, n)
	sessions := make([]driver.Session, n)
	for i := range n {
		drivers[i] = open(t, url)
		if i == 0 {
			drivers[i].Skew(r.skew)
		}
		sessions[i] = session(t, drivers[i], 30*time.Second)
	}
	var all sync.WaitGroup
	for i, s := range sessions {
		all.Go(func() {
			for ctx.Err() == nil {
				if err := r.turn(ctx, i, s, think); err != nil && ctx.Err() == nil {
					t.Errorf("contender %d: %v", i+1, err)
					return
				}
			}
		})
	}
	least := func(want int) func() bool {
		return func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return slices.Min(r.turns) >= want || t.Failed()
		}
	}
	until(t, time.Minute, "a first turn for everybody", least(1))
	before := total(drivers)
	r.mu.Lock()
	r.counts = true
	clear(r.turns)
	r.mu.Unlock()
	until(t, time.Minute, "as many turns for everybody", least(turns))
	after := total(drivers)
	stop()
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	r.sum = redlock.Stats{Grants: after.Grants - before.Grants, Raises: after.Raises - before.Raises, Yields: after.Yields - before.Yields}
}

func (r *race) turn(ctx context.Context, who int, s driver.Session, think func()) error {
	c := mutex("race", true)
	defer func() { _, _ = s.Release(context.WithoutCancel(ctx), c) }()
	r.mu.Lock()
	counts, before := r.counts, r.grants
	r.mu.Unlock()
	began := time.Now()
	g, err := acquire(ctx, s, c)
	if err != nil {
		return err
	}
	waited := time.Since(began)
	r.judge.enter(g.Fence, waited)
	r.mu.Lock()
	if counts {
		r.waits, r.passed = append(r.waits, waited), append(r.passed, r.grants-before)
		r.turns[who]++
	} else if !r.counts {
		r.turns[who]++
	}
	r.grants++
	r.mu.Unlock()
	if think != nil {
		think()
	}
	r.judge.leave()
	return nil
}

func mean[N int | time.Duration](all []N) N {
	var sum N
	for _, n := range all {
		sum += n
	}
	return sum / N(max(len(all), 1))
}

// Fifty contend for one lock. Nobody is passed by more than everybody else twice over, and nobody
// waits longer than five times the mean; the latter is tried up to three times, since a machine
// that stands still for a second makes long waits, too.
func TestFifty(t *testing.T) {
	if testing.Short() {
		t.Skip("a contest: make proof")
	}
	const n, tries = 50, 3
	url := urlOf(addrs(startMasters(t, 5))) + "?node_timeout=10s"
	for try := 1; ; try++ {
		var r race
		r.run(t, n, 8, url, func() {
			timer := time.NewTimer(time.Millisecond)
			<-timer.C
		})
		longest, usual, most := slices.Max(r.waits), mean(r.waits), slices.Max(r.passed)
		t.Logf("%d waits: mean %v, longest %v; passed by %d in the mean, %d at most; %+v", len(r.waits), usual, longest, mean(r.passed), most, r.sum)
		if most > 2*(n-1) {
			t.Errorf("one was passed by %d others, want %d at most: all of them twice", most, 2*(n-1))
		}
		if longest <= 5*usual {
			return
		}
		if try == tries {
			t.Fatalf("the longest wait is %v, want at most 5 times the mean of %v", longest, usual)
		}
	}
}

// Whoever leaves offers all masters the same counter, and whoever comes next waits for the masters
// that answer it: fewer than one grant in twenty has to write its token back.
func TestRaisesAreRare(t *testing.T) {
	url := urlOf(addrs(startMasters(t, 5))) + "?node_timeout=10s"
	for _, n := range []int{8, 24} {
		var r race
		r.run(t, n, 400/n, url, nil)
		t.Logf("%d contenders: %+v, mean wait %v, longest %v", n, r.sum, mean(r.waits), slices.Max(r.waits))
		if r.sum.Raises*20 > r.sum.Grants {
			t.Errorf("%d contenders: %d of %d grants wrote their token back, want a twentieth at most", n, r.sum.Raises, r.sum.Grants)
		}
	}
}

// A claim has a majority that disagrees, and waits in vain for the last master to agree with one of
// them: a process that is gone has it. It does not wait long before it writes its token back.
func TestRaiseDoesNotWaitForever(t *testing.T) {
	set := startMasters(t, 3)
	d := open(t, urlOf(addrs(set)))
	s := session(t, d, 30*time.Second)
	set[0].MustDo(t, "SET", "il:{vain}:qfence:vain", strconv.FormatInt(time.Now().Add(time.Hour).UnixMicro()/64*64, 10))
	occupy(t, "vain", set[:2]...)
	gone := fmt.Sprintf("ilq1:%s-%016d nobody {}", driver.NewID(), 1)
	set[2].MustDo(t, "SET", "vain", gone, "PX", "600000")
	c := mutex("vain", true)
	if g, err := s.Acquire(t.Context(), c); g.Held || err != nil {
		t.Fatalf("without any master: %+v, %v", g, err)
	}
	for _, server := range set[:2] {
		server.MustDo(t, "DEL", "vain")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := acquire(ctx, s, c); err != nil {
		t.Fatalf("with two of three masters that disagree: %v, want it granted without the last one", err)
	}
	if got := d.Stats(); got.Raises != 1 || got.Grants != 1 {
		t.Errorf("%+v, want one grant that wrote its token back", got)
	}
}

// The clock of one of five contenders is an hour behind the others', or ahead of them. Each gets
// its share all the same: it has seen their tickets. It is tried up to three times, since a machine
// that lets one of them stand still makes shares, too.
func TestAWrongClockGetsNoMoreThanItsShare(t *testing.T) {
	t.Parallel()
	const n, turns, tries = 5, 30, 3
	for _, by := range []time.Duration{-time.Hour, -5 * time.Second, time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			url := urlOf(addrs(startMasters(t, 3))) + "?node_timeout=10s&max_ttl=5m"
			for try := 1; ; try++ {
				r := race{skew: by}
				r.run(t, n, turns, url, nil)
				t.Logf("%v turns, passed by %d at most", r.turns, slices.Max(r.passed))
				if most, least := slices.Max(r.turns), slices.Min(r.turns); 2*most <= 3*least {
					return
				}
				if try == tries {
					t.Fatalf("the clock of one of %d is off by %v, and their turns are %v: want one and a half times as many for one as for another, at most", n, by, r.turns)
				}
			}
		})
	}
}
