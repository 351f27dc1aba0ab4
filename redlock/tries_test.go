package redlock_test

import (
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
)

// Eight try a free name at once, and their requests reach the masters in different orders, so that
// as a rule none of them gets a majority by itself. All the same one of them wins.
func TestASplitVoteEndsWithAWinner(t *testing.T) {
	t.Parallel()
	const triers, rounds, attempts = 8, 100, 3
	set := startMasters(t, 5)
	var sessions []driver.Session
	for range triers {
		var all []string
		for _, server := range set {
			w := wire.New(t, server.Addr())
			w.Delay(0, time.Millisecond)
			all = append(all, w.Addr())
		}
		sessions = append(sessions, session(t, open(t, urlOf(all)+"?node_timeout=10s&max_ttl=5m"), 5*time.Minute))
	}
	for attempt := 1; ; attempt++ {
		alone, nobody := 0, 0
		for range rounds {
			switch n := winners(t, sessions); n {
			case 0:
				nobody++
			case 1:
				alone++
			default:
				t.Fatalf("two hold: %d of %d tries at once were granted", n, triers)
			}
		}
		t.Logf("of %d rounds %d had one winner and %d none", rounds, alone, nobody)
		if nobody*100 <= rounds {
			return
		}
		if attempt == attempts {
			t.Fatalf("%d of %d rounds had no winner, want one of a hundred at most", nobody, rounds)
		}
	}
}

// winners has all sessions try a name that is free, and counts those that were granted before any
// of them leaves.
func winners(t *testing.T, sessions []driver.Session) (n int) {
	t.Helper()
	var all sync.WaitGroup
	start := make(chan struct{})
	name, granted := driver.NewID(), make([]bool, len(sessions))
	claims := make([]driver.Claim, len(sessions))
	for i, s := range sessions {
		claims[i] = mutex(name, false)
		all.Go(func() {
			<-start
			g, err := s.Acquire(t.Context(), claims[i])
			if err != nil {
				t.Errorf("a try: %v", err)
			}
			granted[i] = g.Held
		})
	}
	close(start)
	all.Wait()
	for i, held := range granted {
		if held {
			n++
			if was, err := sessions[i].Release(t.Context(), claims[i]); err != nil || !was {
				t.Errorf("release: %v, %v", was, err)
			}
		}
	}
	return n
}
