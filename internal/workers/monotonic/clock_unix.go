//go:build linux || darwin

package monotonic

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now reads the clock by a system call: Go's own monotonic clock begins anew in each process, and
// calibrating one against the other would add an error.
func Now() Instant {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("monotonic: CLOCK_MONOTONIC: " + err.Error())
	}
	return Instant(ts.Nano())
}

// Pause returns after d, or when stop is closed.
func Pause(d time.Duration, stop <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-stop:
	}
}
