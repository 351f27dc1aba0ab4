package interlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/fault"
	"github.com/interlock-go/interlock/internal/local"
	"github.com/interlock-go/interlock/internal/lockname"
)

// handle is what Mutex, RWMutex, Semaphore and Election have in common: a client, a name and
// choices. A handle holds nothing and may be used by many goroutines.
type handle struct {
	client   *Client
	name     string
	settings settings
	err      error // why every call fails
}

// handle makes the handle of a lock; one that cannot be carries its error. needs is what the store
// must have for it.
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

// why is the reason why nobody can lock h, or nil: also that the store keeps sessions for another
// time than it is asked for, beyond what its traits say, which does not go with the grace that was
// chosen. That is known once a session was opened.
func (h *handle) why() error {
	if h.err != nil || h.settings.anyGrace {
		return h.err
	}
	if valid, known := h.client.gave.Load(h.settings.ttl); known && h.settings.grace > local.LongestGiven(valid.(time.Duration)) {
		return &Error{Op: "lock", Name: h.name, Err: local.NoSuchGrace(valid.(time.Duration))}
	}
	return nil
}

var (
	mutexShape = local.Shape{Kind: driver.Mutex, Weight: driver.All, Limit: driver.All}
	writeShape = local.Shape{Kind: driver.Write, Weight: driver.All, Limit: driver.All}
	readShape  = local.Shape{Kind: driver.Read, Weight: 1, Limit: driver.All}
)

// lock waits for a lease of the given shape, or with try does not wait.
func (h *handle) lock(ctx context.Context, op string, s local.Shape, try bool) (*Lease, error) {
	if h.err != nil {
		return nil, h.err
	}
	ctx, wait := h.trace(ctx, op, s.Kind)
	bound, stop := h.bound()
	defer stop()
	for {
		got, err := h.take(ctx, bound, s, try)
		if err != nil {
			err = &Error{Op: op, Name: h.name, Err: err}
			wait.end(ctx, nil, err)
			return nil, err
		}
		if l := newLease(ctx, h.client, op, h.name, got); l != nil {
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
func (h *handle) take(ctx context.Context, bound <-chan time.Time, s local.Shape, try bool) (held, error) {
	if ctx.Err() != nil {
		return held{}, fault.Context(ctx)
	}
	again, err := h.reenter(ctx, s)
	if err != nil {
		return held{}, err
	}
	if again != nil {
		return *again, nil
	}
	p, err := h.client.pool(h.settings.ttl, h.settings.isolated) // an isolated one is for one claim
	if err != nil {
		return held{}, err
	}
	r := h.request(s)
	r.Try, r.Bound, r.Wait = try || h.settings.bounded && h.settings.wait == 0, bound, h.settings.wait
	hold, err := p.Wait(ctx, r)
	if err != nil {
		return held{}, err
	}
	return held{Hold: hold, pool: p, name: h.name, kind: s.Kind}, nil
}

// request is what a goroutine wants of the lock.
func (h *handle) request(s local.Shape) local.Request {
	c := &h.settings
	s.Note = c.note
	return local.Request{
		Name: h.name, Shape: s, Grace: c.grace, AnyGrace: c.anyGrace, MinHold: c.minHold, MaxHold: c.maxHold, Alone: c.noPassing,
	}
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
