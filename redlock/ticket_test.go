package redlock_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
)

// What stands at a name has a ticket that is a year and an hour ahead, or an hour less than a year.
// The former is a wrong clock, and whoever follows it would have everybody follow; the latter is
// followed.
func TestATicketThatIsTooFarAheadIsNotFollowed(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	set := startMasters(t, 3)
	s := session(t, open(t, urlOf(addrs(set))), 30*time.Second)
	next := func(ahead time.Duration) time.Duration {
		t.Helper()
		name := "ahead " + ahead.String()
		for _, server := range set {
			server.MustDo(t, "SET", name, fmt.Sprintf("ilq1:%s-%016d nobody {}", driver.NewID(), time.Now().Add(ahead).UnixMicro()), "PX", "600000")
		}
		for range 2 { // the first one meets it
			if g, err := s.Acquire(t.Context(), mutex(name, true)); g.Held || err != nil {
				t.Fatalf("behind another: %+v, %v", g, err)
			}
		}
		return time.Until(time.UnixMicro(largest(t, set[0], name)))
	}
	if got := next(year + time.Hour); got > time.Hour {
		t.Errorf("behind a claim a year and an hour ahead the next ticket is %v ahead, want that of a clock", got)
	}
	if got := next(year - time.Hour); got < year-2*time.Hour || got > year {
		t.Errorf("behind a claim an hour less than a year ahead the next ticket is %v ahead, want about as much", got)
	}
}

// largest is the largest ticket in a line.
func largest(t *testing.T, server *servertest.Server, name string) int64 {
	t.Helper()
	var score string
	until(t, 30*time.Second, "in line", func() bool {
		all := server.MustDo(t, "EVAL", "return redis.call('ZRANGE', KEYS[1], '-1', '-1', 'WITHSCORES')[2] or ''", "1", "il:{"+name+"}:qline:"+name)
		score = all
		return all != ""
	})
	n, err := strconv.ParseInt(score, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
