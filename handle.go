package interlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/lockname"
)

// handle is what Mutex, RWMutex, Semaphore and Election have in common: a client, a name and choices. A handle holds
// nothing and may be used by many goroutines.
type handle struct {
	client   *Client
	name     string
	settings settings
	err      error // why every call fails
}

// handle makes the handle of a lock; one that cannot be carries its error. needs is what the store must have for it.
func (c *Client) handle(name string, options []LockOption, needs Feature) handle {
	h := handle{client: c, name: name, settings: settings{ttl: c.opts.TTL}}
	for _, o := range options {
		o(&h.settings)
	}
	if h.settings.grace == 0 {
		h.settings.grace = c.opts.Grace
	}
	err := lockname.Check(name)
	if err == nil {
		err = h.settings.check(c.traits)
	}
	if missing := needs &^ c.traits.Has(); err == nil && missing != 0 {
		err = fmt.Errorf("this store has no such locks (%v): %w", missing, errors.ErrUnsupported)
	}
	if err != nil {
		h.err = &Error{Op: "lock", Name: clip(name), Err: err}
	}
	return h
}

// clip keeps an impossible name from filling a log.
func clip(name string) string {
	if len(name) > 64 {
		return strings.ToValidUTF8(name[:64], "") + "…"
	}
	return name
}

var (
	mutexShape = shape{kind: driver.Mutex, weight: driver.All, limit: driver.All}
	writeShape = shape{kind: driver.Write, weight: driver.All, limit: driver.All}
	readShape  = shape{kind: driver.Read, weight: 1, limit: driver.All}
)

// lock waits for a lease of the given shape, or with try does not wait.
func (h *handle) lock(ctx context.Context, op string, s shape, try bool) (*Lease, error) {
	if h.err != nil {
		return nil, h.err
	}
	ctx, wait := h.trace(ctx, op, s.kind)
	bound, stop := h.bound()
	defer stop()
	for {
		t, err := h.take(ctx, bound, s, try)
		if err != nil {
			err = &Error{Op: op, Name: h.name, Err: err}
			wait.end(ctx, nil, err)
			return nil, err
		}
		if l := newLease(ctx, h.client, op, h.name, t); l != nil {
			wait.end(ctx, l, nil)
			return l, nil
		}
	}
}

// bound returns a channel that fires when the option Wait says that it has been long enough.
func (h *handle) bound() (fires <-chan time.Time, stop func() bool) {
	if !h.settings.bounded || h.settings.wait == 0 {
		return nil, func() bool { return true }
	}
	t := time.NewTimer(h.settings.wait)
	return t.C, t.Stop
}

// take is lock without the lease around it.
func (h *handle) take(ctx context.Context, bound <-chan time.Time, s shape, try bool) (turn, error) {
	if ctx.Err() != nil {
		return turn{}, contextError(ctx)
	}
	again, err := h.client.reenter(ctx, h, s)
	if err != nil {
		return turn{}, err
	}
	if again != nil {
		return *again, nil
	}
	s.note = h.settings.note
	try = try || h.settings.bounded && h.settings.wait == 0
	p, err := h.client.pool(h.settings.ttl, h.settings.isolated) // an isolated one is for one claim
	if err != nil {
		return turn{}, err
	}
	hold, err := p.wait(ctx, bound, h, s, try)
	if err != nil {
		return turn{}, err
	}
	return turn{name: h.name, pool: p, hold: hold, kind: s.kind}, nil
}

// wait stands in the local line until it is granted, bound fires or ctx ends.
func (p *pool) wait(ctx context.Context, bound <-chan time.Time, h *handle, s shape, try bool) (*hold, error) {
	w := &waiter{shape: s, settings: &h.settings, grace: h.settings.grace, since: p.client.clock.Now(), try: try, bound: bound, ready: make(chan *claim, 1)}
	p.mu.Lock()
	l := p.line(h.name)
	c, err := l.enter(w)
	p.tidy(l)
	if c != nil && bound != nil { // this goroutine must be free to see that it has been long enough
		go p.errand(c.background(), c, 0)
		c = nil
	}
	if try && c == nil && bound == nil && w.stands { // behind somebody who asks a store that may be silent
		t := time.NewTimer(tryPatience)
		defer t.Stop()
		w.bound = t.C
	}
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if c != nil {
		p.ask(ctx, c)
	}
	for {
		c, decided := w.told(ctx)
		switch {
		case decided:
			return w.hold, w.err
		case c != nil:
			p.attend(ctx, w, c)
		default:
			return p.giveUp(ctx, l, w)
		}
	}
}

// giveUp takes w out of the line, because bound has fired or ctx has ended.
func (p *pool) giveUp(ctx context.Context, l *line, w *waiter) (*hold, error) {
	var ended error
	if ctx.Err() != nil {
		ended = contextError(ctx)
	}
	p.mu.Lock()
	offered := w.refuse()
	if !w.stands { // decided at the same moment
		p.attended(offered)
		p.mu.Unlock()
		switch {
		case w.err != nil:
			return nil, w.err
		case ended == nil:
			return w.hold, nil
		}
		go func() { _ = p.leave(w.hold) }() // the caller waits no longer
		return nil, ended
	}
	why := l.refusal()
	l.withdraw(w)
	p.attended(offered)
	p.mu.Unlock()
	switch {
	case ended != nil:
		why = fmt.Errorf("%w: %w", why, ended)
	case why == ErrUnavailable && w.try: //nolint:errorlint // it has no reason yet
		why = fmt.Errorf("%w: no answer in %v", why, tryPatience)
	case why == ErrUnavailable: //nolint:errorlint // likewise
		why = fmt.Errorf("%w: no answer in the wait of %v", why, w.settings.wait)
	}
	return nil, why
}

// contextError is how ctx ended: what it says by Err and, where its owner gave another reason, by Cause.
func contextError(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return ctx.Err()
}

// do runs fn under the lease that lock returns. See Mutex.Do.
func do(ctx context.Context, fn func(context.Context) error, lock func(context.Context) (*Lease, error)) error {
	lease, err := lock(ctx)
	if err != nil {
		return err
	}
	defer lease.Release() // also when fn panics or ends its goroutine
	work, cancel := context.WithCancelCause(lease.Context())
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	if deadline, ok := ctx.Deadline(); ok {
		var stop context.CancelFunc
		work, stop = context.WithDeadline(work, deadline)
		defer stop()
	}
	err = fn(work)
	if released := lease.Release(); errors.Is(released, ErrLost) {
		return errors.Join(err, released)
	}
	return err
}
