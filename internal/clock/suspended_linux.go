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
		before, boot, after := read(clockMonotonic), read(clockBoottime), read(clockMonotonic)
		if low, high = boot-after, boot-before; high-low < 50*time.Microsecond {
			break
		}
	}
	if known < low || known > high {
		return high
	}
	return known
}

func read(id uintptr) time.Duration {
	var ts syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0
	}
	return time.Duration(ts.Nano())
}
