package local

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/internal/fault"
)

// Wait stands in the line until it is granted what it wants, r.Bound fires or ctx ends.
func (p *Pool) Wait(ctx context.Context, r Request) (*Hold, error) {
	w := &waiter{Request: r, since: p.Clock.Now(), ready: make(chan struct{})}
	c, err := p.enter(w)
	if err != nil {
		return nil, err
	}
	if c != nil && p.acquire(ctx, c, w.since) {
		p.awaitBy(ctx, w, c)
	}
	select {
	case <-w.ready: // rather than the end of ctx, where both have come
		return w.hold, w.err
	default:
	}
	select {
	case <-w.ready:
		return w.hold, w.err
	case <-r.Bound:
	case <-ctx.Done():
	}
	return p.giveUp(ctx, w)
}

// enter puts w into its line. It returns the claim that w has to send itself.
func (p *Pool) enter(w *waiter) (*claim, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lines[w.Name]
	if l == nil {
		l = &line{host: &p.host, name: w.Name}
		l.held = l.only[:0]
		p.lines[w.Name] = l
	}
	c, err := l.enter(w)
	switch w.acquires = c != nil; {
	case err != nil:
		p.removeIfIdle(l)
		return nil, err
	case w.acquires && w.Bound == nil: // its Acquire is bounded, and after that acquire arms patience
		return c, nil
	case w.acquires: // this goroutine must be free to see that it has been long enough
		p.acquireAfter(c, 0)
	}
	p.armPatience(w, w.since)
	return nil, nil
}

// giveUp takes w out of the line, because its bound has fired or ctx has ended.
func (p *Pool) giveUp(ctx context.Context, w *waiter) (*Hold, error) {
	why := p.withdraw(w)
	switch {
	case why == nil && w.err != nil: // decided at the same moment
		return nil, w.err
	case why == nil && ctx.Err() == nil:
		return w.hold, nil
	case why == nil:
		go p.Decline(w.hold, nil) // the caller waits no longer
		return nil, fault.Context(ctx)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w: %w", why, fault.Context(ctx))
	}
	return nil, silent(why, "the wait of "+w.Wait.String())
}

// withdraw takes w out of the line and returns what it waited for, or nil where it does not stand
// there any more.
func (p *Pool) withdraw(w *waiter) (why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !w.queued {
		return nil
	}
	l := p.lines[w.Name]
	why = l.refusal()
	l.waiters.remove(w)
	l.settle()
	return why
}
