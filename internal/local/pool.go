// Package local is the local line: the goroutines of a client that want a name, in order of
// arrival, and the few claims that stand for them in the store's line. What it lets them hold it
// has kept alive by package keepalive.
//
// Events come from the goroutines that want and release, from the store's answers, from keepalive
// and from timers. Each changes the line of a name under the mutex of its pool; then settle makes
// of that what has to be done next, and the pool does that under no mutex.
//
//	enter ─▶ waiters ─▶ standing: asking ─▶ waiting ─▶ held ─▶ holds ─▶ release
//	            ▲                    └──────────────────▲                 │
//	            └── joins a read claim, or is passed an exclusive one ◀───┘
package local

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
	"github.com/interlock-go/interlock/internal/fault"
	"github.com/interlock-go/interlock/internal/keepalive"
)

// A Pool is what the locks of a client with one TTL share: the session, and the lines of the names
// in use. It is safe for concurrent use.
type Pool struct {
	host
	keeper   *keepalive.Keeper
	empty    func() // is told, once, that an isolated pool is empty
	lines    map[string]*line
	patience patience
}

// NewPool returns a pool whose sessions are opened by k. With empty it is isolated, for one lease
// only, and calls empty, under no mutex, when that is gone and its session with it.
func NewPool(c *Config, k keepalive.Config, empty func()) *Pool {
	p := &Pool{empty: empty, lines: map[string]*line{}}
	p.Config, p.ttl, p.isolated, p.actions = c, k.TTL, empty != nil, p
	p.keeper = keepalive.NewKeeper(k, &p.mu)
	p.silence = &p.keeper.Silence
	p.patience.at = clock.Never
	return p
}

// Health renews the session, and opens one if there is none.
func (p *Pool) Health(ctx context.Context) error {
	for again := true; ; again = false {
		s, err := p.keeper.Open(ctx)
		if err != nil {
			return err
		}
		if err = s.Renew(ctx); err == nil || !again || !errors.Is(err, driver.ErrSessionLost) {
			return err
		}
		// The session was over, which says nothing about the store: look with a new one.
	}
}

// Reject fails all waiters, now and from now on.
func (p *Pool) Reject(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closing = why
	p.keeper.Seal()
	for _, l := range p.lines {
		l.reject(why, func(*waiter) bool { return true })
		l.settle()
	}
}

// LoseAll ends all leases.
func (p *Pool) LoseAll(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lines {
		for _, c := range l.held {
			for _, h := range c.holds {
				h.lose(why)
			}
		}
	}
}

// Close closes the session of a pool whose leases are all gone. With an error come the names,
// quoted, of what is not confirmed.
func (p *Pool) Close(ctx context.Context) (unsure []string, err error) {
	s, names := p.detach()
	if s == nil {
		return nil, nil
	}
	if err = s.Driver.Close(ctx); err == nil || errors.Is(err, driver.ErrSessionLost) {
		return nil, nil
	}
	return names, err
}

func (p *Pool) detach() (s *keepalive.Session, names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s = p.keeper.Detach(); s == nil {
		return nil, nil
	}
	for _, name := range s.Names() {
		names = append(names, strconv.Quote(name))
	}
	return s, names
}

// acquireAfter implements actions.
func (p *Pool) acquireAfter(c *claim, pause time.Duration) {
	ctx := c.background()
	go func() {
		if pause > 0 {
			keepalive.Sleep(ctx, pause)
		}
		if p.acquire(ctx, c, p.Clock.Now()) {
			p.waitRemote(ctx, c)
		}
	}()
}

// releaseAfter implements actions.
func (p *Pool) releaseAfter(h *Hold, d time.Duration) *time.Timer {
	return time.AfterFunc(d, func() { p.onReleaseTimer(h) })
}

// removeIfIdle drops a line in which nobody is left, and an isolated pool whose lease and session
// are gone.
func (p *Pool) removeIfIdle(l *line) {
	if p.lines[l.name] == l && l.waiters.length == 0 && l.pending == nil && len(l.extra) == 0 && len(l.held) == 0 {
		delete(p.lines, l.name)
	}
	if !p.isolated || p.closing != nil || len(p.lines) > 0 {
		return
	}
	if s := p.keeper.Session; s != nil && s.Claims() > 0 {
		return
	}
	p.closing = fault.ErrClosed
	p.keeper.Close()
	go p.empty() // takes the client's mutex, which is never taken inside the pool's
}
