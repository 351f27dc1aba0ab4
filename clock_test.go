package interlock_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock"
)

// A machine that was not suspended meanwhile must not be believed to have slept, or leases end early; nor may what is
// known move by the time that another process took between two readings.
func TestClock_NothingSleptBetweenTwoLooks(t *testing.T) {
	first := interlock.SleptSoFar(0)
	last := first
	for range 100_000 {
		now := interlock.SleptSoFar(last)
		if d := now - first; d < -time.Millisecond || d > time.Millisecond {
			t.Fatalf("the machine slept for %v between two readings", d)
		}
		last = now
	}
}

// What is known to be wrong is corrected at the next look.
func TestClock_LooksAgain(t *testing.T) {
	right := interlock.SleptSoFar(0)
	for _, known := range []time.Duration{right - time.Hour, right + time.Hour} {
		if d := interlock.SleptSoFar(known) - right; d < -time.Millisecond || d > time.Millisecond {
			t.Errorf("off by %v", d)
		}
	}
}
