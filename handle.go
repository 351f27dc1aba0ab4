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
	h := handle{client: c, name: name, settings: c.defaults}
	err := lockname.Check(name)
	if len(options) > 0 {
		h.settings = c.opts.settings()
		for _, o := range options {
			o(&h.settings)
		}
		if err == nil {
			err = h.settings.check(c.traits)
		}
	}
	h.settings.want.Name = name
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
	if h.err != nil || h.settings.want.AnyGrace {
		return h.err
	}
	if valid, known := h.client.gave.Load(h.settings.ttl); known && h.settings.want.Grace > local.LongestGiven(valid.(time.Duration)) {
		return &Error{Op: "lock", Name: h.name, Err: local.NoSuchGrace(valid.(time.Duration))}
	}
	return nil
}

var (
	mutexMode = local.Mode{Kind: driver.Mutex, Weight: driver.All, Limit: driver.All}
	writeMode = local.Mode{Kind: driver.Write, Weight: driver.All, Limit: driver.All}
	readMode  = local.Mode{Kind: driver.Read, Weight: 1, Limit: driver.All}
)

// lock waits for a lease of all handles, or with try does not wait. They are taken one after the
// other: while it waits for one, those that it has can be lost. Then it begins again.
func lock(ctx context.Context, op string, s local.Mode, try bool, handles ...*handle) (l *Lease, err error) {
	first := handles[0]
	if first.err != nil {
		return nil, first.err
	}
	var wait tracedWait
	if first.client.opts.Tracer != nil {
		ctx, wait = first.trace(ctx, op, s.Kind)
	}
	var bound <-chan time.Time // fires when the option Wait says that it has been long enough
	if d := first.settings.want.Wait; d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		bound = t.C
	}
	parent := leaseOf(ctx)
	for l == nil && err == nil {
		var one [1]held
		holds := one[:0]
		for _, h := range handles {
			got, why := h.take(ctx, parent, bound, s, try)
			if why != nil {
				err = &Error{Op: op, Name: h.name, Err: why}
				decline(ctx, holds, nil)
				break
			}
			holds = append(holds, got)
		}
		if err == nil {
			l = newLease(ctx, parent, first.client, first.name, holds)
		}
	}
	if wait.tracer != nil {
		wait.end(ctx, l, err)
	}
	return l, err
}

// take is lock of one handle, without the lease around it. parent is the lease whose context ctx
// descends from, or nil.
func (h *handle) take(ctx context.Context, parent *lease, bound <-chan time.Time, s local.Mode, try bool) (held, error) {
	if ctx.Err() != nil {
		return held{}, fault.Context(ctx)
	}
	r := h.settings.want
	r.Kind, r.Weight, r.Limit = s.Kind, s.Weight, s.Limit
	r.Try, r.Bound = r.Try || try, bound
	if parent != nil {
		if again, err := h.reenter(parent, &r); again.Hold != nil || err != nil {
			return again, err
		}
	}
	p, err := h.client.pool(h.settings.ttl, h.settings.isolated) // an isolated one is for one claim
	if err != nil {
		return held{}, err
	}
	hold, err := p.Wait(ctx, r)
	return held{Hold: hold, pool: p, name: h.name, kind: s.Kind}, err
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
