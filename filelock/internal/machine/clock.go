//go:build linux || darwin

package machine

import (
	"sync/atomic"
	"time"
)

// fastClock reads the boot-time clock without a system call, most of the time: Go's monotonic clock costs a fifth, and
// both run at the same pace except that it stops while the machine is suspended. It is never behind, by which a lease
// would be shorter than its owner was told, and may be some microseconds ahead: only the owner's time is set by it, and
// whether that time has passed is asked of the boot-time clock itself.
//
// When to measure the difference anew? A suspension moves the wall clock
// against the monotonic one by exactly the time that the boot-time clock is ahead; so does whoever sets the wall clock.
// In either case, and four times a second in any case, the difference is measured anew.
type fastClock struct {
	read   func() int64
	origin time.Time
	last   atomic.Pointer[clockReading]
}

type clockReading struct {
	mono   int64 // since origin
	ahead  int64 // of the boot-time clock
	offset int64 // of the wall clock
}

// ClockClose is how far the fast clock may be ahead, in nanoseconds: two readings further apart than this say little about each
// other.
const ClockClose = int64(100 * time.Microsecond)

const (
	clockJump  = int64(time.Millisecond)
	clockFresh = int64(250 * time.Millisecond)
)

func newFastClock(read func() int64) *fastClock { return &fastClock{read: read, origin: time.Now()} }

// now returns the time of the boot-time clock, or a little more: by what passes between two readings.
func (c *fastClock) now() int64 {
	t := time.Now()
	mono := int64(t.Sub(c.origin))
	offset := t.UnixNano() - mono
	if l := c.last.Load(); l != nil {
		if jump := offset - l.offset; mono-l.mono < clockFresh && -clockJump < jump && jump < clockJump {
			return mono + l.ahead
		}
	}
	boot := c.read()
	if int64(time.Since(c.origin))-mono < ClockClose {
		c.last.Store(&clockReading{mono: mono, ahead: boot - mono, offset: offset})
	}
	return boot
}
