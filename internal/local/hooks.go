package local

import (
	"context"
	"runtime"
	"slices"

	"github.com/interlock-go/interlock/internal/lazyctx"
)

// What the tests of package interlock see of a pool.

// StopTimers does what a stop of the process does to the timer that ends leases: it does not come.
func (p *Pool) StopTimers() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.keeper.Session; s != nil {
		s.StopTimer()
	}
}

// Unlocked reports whether nobody keeps the pool's mutex, or one of a request that is under way:
// others may have one for a moment.
func (p *Pool) Unlocked() bool {
	for range 5_000_000 { // seconds, since whoever has one for a moment may not run meanwhile
		if p.mu.TryLock() {
			calls := p.calls()
			p.mu.Unlock()
			return !slices.ContainsFunc(calls, func(c *lazyctx.Context) bool { return !c.Unlocked() })
		}
		runtime.Gosched()
	}
	return false
}

// calls are the requests of claims that stand for somebody. The mutex is held.
func (p *Pool) calls() (under []*lazyctx.Context) {
	for _, l := range p.lines {
		if l.pending != nil && l.pending.call != nil {
			under = append(under, l.pending.call)
		}
	}
	return under
}

// Size counts the lines of a pool and the claims of its session.
func (p *Pool) Size() (lines, claims int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.keeper.Session; s != nil {
		claims = s.Claims()
	}
	return len(p.lines), claims
}

// GiveUpWhenGranted is Wait for a goroutine whose context ends at the moment at which the store has
// granted what it wants.
func (p *Pool) GiveUpWhenGranted(ctx context.Context, r Request) error {
	w := &waiter{Request: r, since: p.Clock.Now(), ready: make(chan struct{})}
	c, err := p.enter(w)
	if err != nil {
		return err
	}
	p.acquire(ctx, c, w.since)
	<-w.ready
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	_, err = p.giveUp(cancelled, w)
	return err
}
