package redisstore

import (
	"sync/atomic"
	"time"
)

// quiet is how long a process that never waits holds a lock before it subscribes.
const quiet = 500 * time.Millisecond

// Holding subscribes a process that has held a lock for 500 ms but never waited, so that the
// message of an operator's break can reach it: that goes to the channel in the claim's value.
type Holding struct {
	soon  atomic.Bool // the timer runs
	timer *time.Timer
}

// NewHolding returns a Holding that calls listen, which subscribes for what is held by then.
func NewHolding(listen func()) *Holding {
	h := &Holding{}
	h.timer = time.AfterFunc(time.Hour, func() {
		h.soon.Store(false)
		listen()
	})
	h.timer.Stop()
	return h
}

// Began starts the timer, unless it runs. It is cheap enough to be called at every grant.
func (h *Holding) Began() {
	if h.soon.CompareAndSwap(false, true) {
		h.timer.Reset(quiet)
	}
}

// Stop stops the timer.
func (h *Holding) Stop() { h.timer.Stop() }
