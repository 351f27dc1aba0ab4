package guard

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	sendFlags    = 0
	receiveFlags = 0 // the descriptors are marked one by one
)

// Now reads the clock of deadlines: CLOCK_MONOTONIC, which on macOS counts the time asleep.
func Now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(fmt.Sprintf("guard: CLOCK_MONOTONIC cannot be read: %v", err))
	}
	return t.Nano()
}

// alarm rings on C at or soon after the time set last. Go's timers do not count the time asleep, so
// it looks at the clock at least once a second.
type alarm struct {
	C <-chan struct{}
	c chan struct{}

	mu    sync.Mutex
	at    int64
	timer *time.Timer
}

func newAlarm() (*alarm, error) {
	c := make(chan struct{}, 1)
	a := &alarm{C: c, c: c}
	a.timer = time.AfterFunc(time.Hour, a.look)
	return a, nil
}

func (a *alarm) look() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at == 0 {
		return
	}
	left := time.Duration(a.at - Now())
	if left > 0 {
		a.timer.Reset(min(left, time.Second))
		return
	}
	a.at = 0
	select {
	case a.c <- struct{}{}:
	default:
	}
}

// set moves the alarm to the time at, or silences it where at is 0.
func (a *alarm) set(at int64) {
	a.mu.Lock()
	a.at = at
	a.mu.Unlock()
	a.timer.Reset(0)
}

func (a *alarm) close() { a.timer.Stop() }
