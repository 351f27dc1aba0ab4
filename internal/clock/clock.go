// Package clock is the clock that leases are measured by: one that no wall clock moves, and that
// goes on while the machine is suspended.
package clock

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// An Instant is what has passed on a [Clock] since it was made.
type Instant time.Duration

// Never is after every other instant.
const Never Instant = math.MaxInt64

// Sub returns the time from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

// Add returns the instant d later. It stops at Never: the longest duration that a user can give
// means that, not long ago.
func (i Instant) Add(d time.Duration) Instant {
	if sum := i + Instant(d); d <= 0 || sum > i {
		return sum
	}
	return Never
}

// A Clock is Go's monotonic clock plus the time for which the machine was suspended, during which
// that clock stands still on Linux. It is safe for concurrent use.
type Clock struct {
	epoch     time.Time
	suspended func(known time.Duration) time.Duration // how long the machine slept so far

	base   time.Duration
	slept  atomic.Int64 // of time.Duration, as known
	synced atomic.Int64 // of Instant
	mu     sync.Mutex   // held while slept changes
}

// New returns a clock that stands at 0. suspended says how long the machine was suspended so far,
// given what is known: [Suspended], but in tests.
func New(suspended func(known time.Duration) time.Duration) *Clock {
	base := suspended(0)
	c := &Clock{epoch: time.Now(), suspended: suspended, base: base}
	c.slept.Store(int64(base))
	return c
}

// Now is cheap: it adds what the last NowSynced found out about suspension.
func (c *Clock) Now() Instant {
	return Instant(time.Since(c.epoch) + time.Duration(c.slept.Load()) - c.base)
}

// NowSynced asks the system whether the machine was suspended, and returns the time. Every timer on
// which trust depends calls it at most a second apart, and so does every renewal.
func (c *Clock) NowSynced() Instant {
	known := time.Duration(c.slept.Load())
	if c.suspended(known) != known { // most find nothing new, and those of many goroutines need not wait for each other
		c.mu.Lock()
		c.slept.Store(int64(c.suspended(time.Duration(c.slept.Load()))))
		c.mu.Unlock()
	}
	now := c.Now()
	c.synced.Store(int64(now))
	return now
}

// NowSampled is NowSynced for what is called by the thousand: it asks the system once in a
// millisecond of running at most.
func (c *Clock) NowSampled() Instant {
	if now := c.Now(); now.Sub(Instant(c.synced.Load())) < time.Millisecond {
		return now
	}
	return c.NowSynced()
}

// Since returns what has passed since then.
func (c *Clock) Since(then Instant) time.Duration { return c.Now().Sub(then) }

// Display returns the time of day at i, for people.
func (c *Clock) Display(i Instant) time.Time { return time.Now().Add(i.Sub(c.Now())) }
