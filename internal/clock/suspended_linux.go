package clock

import (
	"syscall"
	"time"
	"unsafe"
)

const (
	clockMonotonic = 1
	clockBoottime  = 7
)

// Suspended returns how long the machine was suspended since it booted: CLOCK_BOOTTIME less
// CLOCK_MONOTONIC. The two cannot be read at one instant, so the first is read between two readings
// of the second; while what is known lies between the bounds that this gives, nothing has changed.
// A reading that was interrupted gives wide bounds, and is repeated: trust must not move by what
// another process took of the processor.
func Suspended(known time.Duration) time.Duration {
	var low, high time.Duration
	for range 5 {
		var at [3]syscall.Timespec
		for i, clock := range [3]uintptr{clockMonotonic, clockBoottime, clockMonotonic} { // none of them can fail
			_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&at[i])), 0)
		}
		before, boot, after := time.Duration(at[0].Nano()), time.Duration(at[1].Nano()), time.Duration(at[2].Nano())
		if low, high = boot-after, boot-before; high-low < 50*time.Microsecond {
			break
		}
	}
	if known < low || known > high {
		return high
	}
	return known
}
