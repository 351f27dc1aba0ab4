//go:build linux || darwin

package torture

import (
	"time"

	"golang.org/x/sys/unix"
)

// now reads the observer's clock by a system call in every process: Go's own monotonic clock begins anew in each, and
// calibrating one against the other would put an error of its own into the verdicts.
func now() instant {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("torture: CLOCK_MONOTONIC: " + err.Error())
	}
	return instant(ts.Nano())
}

// pause returns after d, or when stop is closed.
func pause(d time.Duration, stop <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-stop:
	}
}
