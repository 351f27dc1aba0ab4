package interlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
)

// pool is what the locks of a client with one TTL share: the session, which is opened when the first claim is sent and
// again after it was lost, and the local lines of the names in use. One mutex guards all of it; nothing waits while
// holding it, and neither the store nor the user's code is called: no method of a user's context, no log and no tracer.
type pool struct {
	client   *Client
	ttl      time.Duration
	isolated bool // for one lease only

	mu      sync.Mutex
	lines   map[string]*line
	young   map[*Lease]struct{} // which nobody watches for being dropped yet
	waiting int                 // in all lines
	session *session
	opening chan struct{} // closed when the opening under way has ended

	closing error // why nobody may enter any more

	silence silence
	nextEnd clock.Instant // no waiter's patience ends earlier
}

func newPool(c *Client, ttl time.Duration, isolated bool) *pool {
	return &pool{client: c, ttl: ttl, isolated: isolated, lines: map[string]*line{}, young: map[*Lease]struct{}{}}
}

// open returns the pool's session, opening one if there is none. Of several callers one opens and the others wait.
func (p *pool) open(ctx context.Context) (*session, error) {
	for {
		p.mu.Lock()
		if s := p.session; s != nil {
			p.mu.Unlock()
			return s, nil
		}
		if p.closing != nil {
			p.mu.Unlock()
			return nil, ErrClosed
		}
		if opening := p.opening; opening != nil {
			p.mu.Unlock()
			select {
			case <-opening:
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		opened := make(chan struct{})
		p.opening = opened
		p.mu.Unlock()

		started := p.client.clock.Look()
		d, err := p.client.driver.Open(ctx, driver.Spec{ID: driver.NewID(), Owner: p.client.owner, TTL: p.ttl})

		p.mu.Lock()
		p.opening = nil
		close(opened)
		if err == nil && p.closing != nil { // shut down, or an isolated pool whose only waiter has left, meanwhile
			p.mu.Unlock()
			p.client.cleaner.close(d)
			return nil, ErrClosed
		}
		if err == nil {
			p.answered(p.client.clock.Now())
			p.session = newSession(p, d, started)
		}
		s := p.session
		p.mu.Unlock()
		if err == nil {
			p.client.given(p.ttl, d.Valid())
		}
		return s, err
	}
}

// turnAway fails all waiters, now and from now on.
func (p *pool) turnAway(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closing = why
	for _, l := range p.lines {
		l.turnAway(why, func(*waiter) bool { return true })
	}
}

// loseAll ends all leases.
func (p *pool) loseAll(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lines {
		for _, c := range l.held {
			for _, h := range c.holds {
				p.lose(h, why)
			}
		}
	}
}

// lose ends the contexts of a hold's leases and takes the hold out of the line a grace later, unless its owner releases
// it before: whoever is next gets in when the work has stopped or its time to stop is over.
func (p *pool) lose(h *hold, why error) {
	if h.leaving != nil && h.sharers == 0 && h.claim.gone != nil {
		h.leaving.Reset(0) // released, and there is nothing left to keep for its MinHold
	}
	if h.lost != nil || h.left {
		return
	}
	h.lost = lost(why)
	if h.leaving != nil {
		return // released, and kept for its MinHold only
	}
	for _, l := range h.leases {
		h.used = true
		l.end(h.lost)
	}
	p.client.log(slog.LevelWarn, "interlock: lease lost", "name", h.claim.Name, "fence", h.fence, "reason", why)
	h.leaving = time.AfterFunc(h.grace, func() { _ = p.leave(h) }) // or with the rest of its MinHold after that
}

// gone takes in that the store no longer keeps a claim, or keeps it only until it is released. Holders lose it; waiters
// stand again at the end of the line, unless an operator sent them away, which the driver's Wait says.
func (p *pool) gone(c *claim, why error) {
	if c.gone == nil {
		c.gone = why
	}
	for _, h := range c.holds {
		p.lose(h, why)
	}
	l := c.line
	if l.standing != c || c.state != waiting {
		return
	}
	if !c.session.over {
		return // Wait returns the reason, and knows it better
	}
	l.standing = nil
	c.settled()
	p.start(l)
}

// shut closes the sessions of pools whose leases are all gone, side by side: a store that does not answer costs the time of one. What
// is not confirmed goes by its TTL, and is named, once however many sessions had it.
func shut(ctx context.Context, pools []*pool) error {
	var mu sync.Mutex
	var why error
	var names []string
	var closes sync.WaitGroup
	for _, p := range pools {
		closes.Go(func() {
			unsure, err := p.shut(ctx)
			if len(unsure) == 0 {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if names = append(names, unsure...); why == nil {
				why = err
			}
		})
	}
	closes.Wait()
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	names = slices.Compact(names)
	const some = 5 // are named
	text := strings.Join(names[:min(some, len(names))], ", ")
	if more := len(names) - some; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if cause := ctx.Err(); cause != nil {
		why = cause // a driver may say so for each of them
	}
	return fmt.Errorf("interlock: close: %w: %s: %w", ErrUncertain, text, why)
}

// shut closes the pool's session. With an error come the names, quoted, of what is not confirmed.
func (p *pool) shut(ctx context.Context) (unsure []string, err error) {
	p.mu.Lock()
	s := p.session
	if s != nil {
		s.stop()
		for _, c := range s.claims {
			unsure = append(unsure, strconv.Quote(c.Name))
		}
	}
	p.mu.Unlock()
	if s == nil {
		return nil, nil
	}
	if err = s.driver.Close(ctx); err == nil || errors.Is(err, driver.ErrSessionLost) {
		return nil, nil
	}
	return unsure, err
}

// forget drops an isolated pool, whose lease is gone, from the client. A session that is being opened for it is closed
// when it comes.
func (p *pool) forget() {
	p.closing = ErrClosed
	if p.session != nil {
		p.session.retire()
	}
	go func() { // the client's mutex is never taken inside the pool's
		p.client.mu.Lock()
		defer p.client.mu.Unlock()
		delete(p.client.isolated, p)
	}()
}

// final reports whether an error of an acquire means that asking again will not help.
func final(err error) bool {
	return errors.Is(err, driver.ErrRefused) || errors.Is(err, errors.ErrUnsupported)
}
