//go:build linux || darwin

package machine

import (
	"testing"
	"time"
)

func TestClock_FollowsTheBootClock(t *testing.T) {
	c := newFastClock(BootClock)
	reads := 0
	c.read = func() int64 { reads++; return BootClock() }
	for deadline := time.Now().Add(300 * time.Millisecond); time.Now().Before(deadline); {
		low := BootClock()
		got := c.now()
		high := BootClock()
		if slack := int64(2 * time.Millisecond); got < low-slack || got > high+slack {
			t.Fatalf("%d is not between %d and %d", got, low, high)
		}
	}
	if reads > 100 {
		t.Errorf("%d system calls", reads)
	}
}

// The machine was suspended: Go's monotonic clock stood still, the wall clock and the boot-time clock went on.
func TestClock_NoticesSuspension(t *testing.T) {
	asleep := int64(0)
	c := newFastClock(func() int64 { return BootClock() + asleep })
	for c.last.Load() == nil { // as long as the process was stopped between the two readings
		c.now()
	}
	asleep = int64(time.Hour)
	c.last.Store(&clockReading{mono: c.last.Load().mono, ahead: c.last.Load().ahead, offset: c.last.Load().offset - asleep})
	if got, want := c.now(), BootClock()+asleep; got < want-int64(time.Second) || got > want+int64(time.Second) {
		t.Errorf("%d after an hour of sleep, want about %d", got, want)
	}
}
