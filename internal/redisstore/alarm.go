package redisstore

import (
	"sync/atomic"
	"time"
)

// Alarm is how a session tells the core what cannot wait for the next renewal: see driver.LossNotifier and driver.Nudger.
type Alarm struct {
	lost  chan string
	nudge chan struct{}
}

// NewAlarm returns an alarm.
func NewAlarm() Alarm { return Alarm{make(chan string, 64), make(chan struct{}, 1)} }

// Lost implements driver.LossNotifier.
func (a Alarm) Lost() <-chan string { return a.lost }

// Nudge implements driver.Nudger.
func (a Alarm) Nudge() <-chan struct{} { return a.nudge }

// Lose says that a claim is lost. Where too many are at once, the renewal says it.
func (a Alarm) Lose(id string) {
	select {
	case a.lost <- id:
	default:
		a.Hurry()
	}
}

// Hurry asks for a renewal now.
func (a Alarm) Hurry() {
	select {
	case a.nudge <- struct{}{}:
	default:
	}
}

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
