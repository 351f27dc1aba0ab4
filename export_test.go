package interlock

import (
	"context"
	"maps"
	"runtime"
	"slices"

	"github.com/interlock-go/interlock/internal/local"
)

// NewClientWithClock is New with a clock that counts suspension in its own way.
var NewClientWithClock = newClient

// StopTrustTimers does what a stop of the process does to the timers that end leases: they do not
// come.
func StopTrustTimers(c *Client) {
	for _, p := range c.allPools() {
		p.StopTimers()
	}
}

// Drop does what the garbage collector does to a lease that nobody has any more.
func Drop(l *Lease) { l.warnDropped() }

// GiveUpInTheMomentOfItsGrant does what a Lock does whose context ends when the store has just
// granted it.
func GiveUpInTheMomentOfItsGrant(ctx context.Context, m *Mutex) error {
	p, err := m.client.pool(m.settings.ttl, m.settings.isolated)
	if err != nil {
		return err
	}
	r := m.settings.want
	r.Kind, r.Weight, r.Limit = mutexMode.Kind, mutexMode.Weight, mutexMode.Limit
	return p.GiveUpWhenGranted(ctx, r)
}

// Locked reports whether somebody keeps the mutex for which the end of a lease waits: others may
// have it for a moment.
func Locked(l *Lease) bool {
	for range 1000 {
		if l.mu.TryLock() {
			l.mu.Unlock()
			return false
		}
		runtime.Gosched()
	}
	return true
}

// PoolsLocked reports whether somebody keeps a mutex of the client's pools, or of a request of
// theirs that is under way: others may have one for a moment.
func PoolsLocked(c *Client) bool {
	for range 5_000_000 {
		if c.mu.TryLock() {
			pools := slices.Collect(maps.Values(c.pools))
			c.mu.Unlock()
			return slices.ContainsFunc(pools, func(p *local.Pool) bool { return !p.Unlocked() })
		}
		runtime.Gosched()
	}
	return true
}

// Remains counts what a client keeps for locks: isolated sessions, local lines, claims.
func Remains(c *Client) (isolated, lines, claims int) {
	c.mu.Lock()
	isolated = len(c.isolated)
	c.mu.Unlock()
	for _, p := range c.allPools() {
		l, n := p.Size()
		lines += l
		claims += n
	}
	return isolated, lines, claims
}
