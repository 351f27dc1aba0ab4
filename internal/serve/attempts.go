package serve

import (
	"sync"
	"time"
)

// The bounds of attempts with tokens that nobody has.
const (
	attemptsMost = 10 // in a minute, from one address
	attemptsFrom = 4096
)

// attempts counts them by address, a minute at a time. What it is for is the log and the work: a token of 16 characters is not found by trying.
type attempts struct {
	now func() time.Time

	mu    sync.Mutex
	began time.Time
	by    map[string]int
}

func newAttempts(now func() time.Time) *attempts { return &attempts{now: now, by: map[string]int{}} }

// add counts one and returns how many there were from this address in this minute. Addresses beyond those that are kept share a count.
func (a *attempts) add(from string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := a.now(); now.Sub(a.began) >= time.Minute {
		a.began = now
		clear(a.by)
	}
	if _, known := a.by[from]; !known && len(a.by) >= attemptsFrom {
		from = ""
	}
	a.by[from]++
	return a.by[from]
}
