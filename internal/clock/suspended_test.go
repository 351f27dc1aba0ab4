package clock_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/clock"
)

// A machine that was not suspended meanwhile must not be believed to have slept, or leases end
// early; nor may what is known move by the time that another process took between two readings.
func TestSuspended_NothingSleptBetweenTwoLooks(t *testing.T) {
	first := clock.Suspended(0)
	last := first
	for range 100_000 {
		now := clock.Suspended(last)
		if d := now - first; d < -time.Millisecond || d > time.Millisecond {
			t.Fatalf("the machine slept for %v between two readings", d)
		}
		last = now
	}
}

// What is known to be wrong is corrected at the next look.
func TestSuspended_LooksAgain(t *testing.T) {
	right := clock.Suspended(0)
	for _, known := range []time.Duration{right - time.Hour, right + time.Hour} {
		if d := clock.Suspended(known) - right; d < -time.Millisecond || d > time.Millisecond {
			t.Errorf("off by %v", d)
		}
	}
}
