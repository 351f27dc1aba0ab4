package interlock

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// instant is a time on the client's own clock: what has passed since the client was made, on Go's monotonic clock plus
// the time for which the machine was suspended, during which that clock stands still on Linux. No wall clock decides
// anything.
type instant time.Duration

func (i instant) sub(j instant) time.Duration      { return time.Duration(i - j) }
func (i instant) before(j instant) bool            { return i < j }
func (c *clock) until(i instant) time.Duration     { return i.sub(c.now()) }
func (c *clock) display(i instant) time.Time       { return time.Now().Add(c.until(i)) }
func (c *clock) passed(from instant) time.Duration { return c.now().sub(from) }

// add stops at the end of time: the longest duration that a user can give means never, not long ago.
func (i instant) add(d time.Duration) instant {
	if sum := i + instant(d); d <= 0 || sum > i {
		return sum
	}
	return math.MaxInt64
}

type clock struct {
	epoch     time.Time
	suspended func(known time.Duration) time.Duration // how long the machine slept so far; injected by tests

	base   time.Duration
	slept  atomic.Int64 // of time.Duration, as known
	looked atomic.Int64 // of instant
	mu     sync.Mutex   // held while slept changes
}

func newClock(suspended func(time.Duration) time.Duration) *clock {
	base := suspended(0)
	c := &clock{epoch: time.Now(), suspended: suspended, base: base}
	c.slept.Store(int64(base))
	return c
}

// now is cheap: it adds what the last look found out about suspension.
func (c *clock) now() instant {
	return instant(time.Since(c.epoch) + time.Duration(c.slept.Load()) - c.base)
}

// look asks the system whether the machine was suspended. Every timer on which trust depends calls it at most a second
// apart, and so does every renewal.
func (c *clock) look() instant {
	known := time.Duration(c.slept.Load())
	if c.suspended(known) != known { // most find nothing new, and those of many goroutines need not wait for each other
		c.mu.Lock()
		c.slept.Store(int64(c.suspended(time.Duration(c.slept.Load()))))
		c.mu.Unlock()
	}
	now := c.now()
	c.looked.Store(int64(now))
	return now
}

// glance is look for what is called by the thousand: it asks the system once in a millisecond of running at most.
func (c *clock) glance() instant {
	if now := c.now(); now.sub(instant(c.looked.Load())) < time.Millisecond {
		return now
	}
	return c.look()
}
