package serve

import (
	"net/netip"
	"sync"
	"time"
)

// The bounds of attempts with tokens that nobody has. An address of IPv6 stands for its network of 64 bits: one machine has as many as it likes of
// these.
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
	if ip, err := netip.ParseAddr(from); err == nil && ip.Is6() {
		network, _ := ip.WithZone("").Prefix(64)
		from = network.String()
	}
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
