package serve

import (
	"net/netip"
	"sync"
	"time"
)

// The bounds of attempts with tokens that nobody has. Of an IPv6 address its network of 64 bits
// counts, since one machine may use all of that.
const (
	attemptsMost = 10   // in a minute, from one address
	attemptsFrom = 4096 // addresses
)

// attempts counts attempts by address, a minute at a time. It bounds the log and the work: a token
// of 16 characters is not found by trying.
type attempts struct {
	now func() time.Time

	mu    sync.Mutex
	began time.Time
	by    map[string]int
}

func newAttempts(now func() time.Time) *attempts { return &attempts{now: now, by: map[string]int{}} }

// add counts an attempt and returns how many there were from this address in this minute. Addresses
// beyond attemptsFrom share a count.
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
