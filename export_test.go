package interlock

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/internal/lazyctx"
)

// NewClientWithClock is New with a clock that counts suspension in its own way.
var NewClientWithClock = newClient

// StopTrustTimers does what a stop of the process does to the timers that end leases: they do not come.
func StopTrustTimers(c *Client) {
	for _, p := range c.everyPool() {
		p.mu.Lock()
		if s := p.session; s != nil {
			s.trust.Stop()
		}
		p.mu.Unlock()
	}
}

// Drop does what the garbage collector does to a lease that nobody has any more.
func Drop(l *Lease) { l.warnDropped() }

// GiveUpInTheMomentOfItsGrant does what a Lock does whose context ends when the store has just granted it.
func GiveUpInTheMomentOfItsGrant(ctx context.Context, m *Mutex) error {
	p, err := m.client.pool(m.settings.ttl, m.settings.isolated)
	if err != nil {
		return err
	}
	w := &waiter{shape: mutexShape, settings: &m.settings, grace: m.settings.grace, since: m.client.clock.Now(), ready: make(chan *claim, 1)}
	p.mu.Lock()
	l := p.line(m.name)
	c, err := l.enter(w)
	p.mu.Unlock()
	if err != nil {
		return err
	}
	p.ask(ctx, c)
	<-w.ready
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	_, err = p.giveUp(cancelled, l, w)
	return err
}

// Locked reports whether somebody keeps the mutex for which the end of a lease waits: others may have it for a moment.
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

// PoolsLocked reports whether somebody keeps a mutex of the client's pools, or of a request of theirs that is under way: others may have
// one for a moment.
func PoolsLocked(c *Client) bool {
	free := func(mu *sync.Mutex) bool {
		for range 5_000_000 { // seconds, since whoever has one for a moment may not run meanwhile
			if mu.TryLock() {
				return true
			}
			runtime.Gosched()
		}
		return false
	}
	if !free(&c.mu) {
		return true
	}
	pools := slices.Collect(maps.Values(c.pools))
	c.mu.Unlock()
	for _, p := range pools {
		if !free(&p.mu) {
			return true
		}
		var sending []*lazyctx.Context
		for _, l := range p.lines {
			if s := l.standing; s != nil && s.sending != nil {
				sending = append(sending, s.sending)
			}
		}
		p.mu.Unlock()
		for _, b := range sending {
			if !b.Unlocked() {
				return true
			}
		}
	}
	return false
}

// Remains counts what a client keeps for locks: isolated sessions, local lines, claims.
func Remains(c *Client) (isolated, lines, claims int) {
	c.mu.Lock()
	isolated = len(c.isolated)
	c.mu.Unlock()
	for _, p := range c.everyPool() {
		p.mu.Lock()
		lines += len(p.lines)
		if p.session != nil {
			claims += len(p.session.claims)
		}
		p.mu.Unlock()
	}
	return isolated, lines, claims
}
