package redisstore

import (
	"sync/atomic"
	"time"
)

// quiet is how long a process that never waits holds something before it subscribes.
const quiet = 500 * time.Millisecond

// Holding has a process that holds something listen after a while. An operator who breaks a claim tells its process by
// the channel in the claim's value, and a process that never waits has no subscription yet.
type Holding struct {
	soon  atomic.Bool
	timer *time.Timer
}

// NewHolding returns a Holding that calls listen, which looks what is held by then.
func NewHolding(listen func()) *Holding {
	h := &Holding{}
	h.timer = time.AfterFunc(time.Hour, func() {
		h.soon.Store(false)
		listen()
	})
	h.timer.Stop()
	return h
}

// Began says that something is held.
func (h *Holding) Began() {
	if h.soon.CompareAndSwap(false, true) {
		h.timer.Reset(quiet)
	}
}

// Stop has nobody listen any more.
func (h *Holding) Stop() { h.timer.Stop() }
