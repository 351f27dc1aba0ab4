package interlock_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// everySession is what the sessions of memlock can do.
type everySession interface {
	driver.Session
	driver.Requeuer
	driver.LossNotifier
	driver.Nudger
}

// changed is a driver whose sessions are changed.
type changed struct {
	*memlock.Driver
	session func(everySession) driver.Session
}

func (d changed) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	s, err := d.Driver.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	return d.session(s.(everySession)), nil
}

// spy is a driver whose calls a test records, delays and fails, on their way to the store and back.
type spy struct {
	*memlock.Driver

	opened func(driver.Spec) // set before the first call; nil: nothing

	mu     sync.Mutex
	calls  []call
	before func(ctx context.Context, op string, c driver.Claim) error
	after  func(op string, c driver.Claim, err error) error
}

// call is one request, in the order in which they were made.
type call struct {
	op    string // open, acquire, wait, release, requeue, renew or close
	claim driver.Claim
}

// ahead sets what is called before each request from now on; its error keeps the request from the
// store. nil: nothing.
func (d *spy) ahead(before func(ctx context.Context, op string, c driver.Claim) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before = before
}

// behind sets what is called after each request from now on; its error is what the core hears.
func (d *spy) behind(after func(op string, c driver.Claim, err error) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.after = after
}

// made returns the calls so far of the given kinds.
func (d *spy) made(ops ...string) (calls []call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.calls {
		if slices.Contains(ops, c.op) {
			calls = append(calls, c)
		}
	}
	return calls
}

// count returns the number of calls so far of one kind.
func (d *spy) count(op string) int { return len(d.made(op)) }

// spied makes one call. The core hears either its answer or an error.
func spied[R any](ctx context.Context, d *spy, op string, c driver.Claim, do func() (R, error)) (R, error) {
	var none R
	d.mu.Lock()
	d.calls = append(d.calls, call{op, c})
	before, after := d.before, d.after
	d.mu.Unlock()
	if before != nil {
		if err := before(ctx, op, c); err != nil {
			return none, err
		}
	}
	r, err := do()
	if after != nil {
		err = after(op, c, err)
	}
	if err != nil {
		return none, err
	}
	return r, nil
}

func (d *spy) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	if d.opened != nil {
		d.opened(spec)
	}
	return spied(ctx, d, "open", driver.Claim{}, func() (driver.Session, error) {
		s, err := d.Driver.Open(ctx, spec)
		if err != nil {
			return nil, err
		}
		return &spiedSession{s.(everySession), d}, nil
	})
}

type spiedSession struct {
	everySession
	d *spy
}

func (s *spiedSession) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return spied(ctx, s.d, "acquire", c, func() (driver.Grant, error) { return s.everySession.Acquire(ctx, c) })
}

func (s *spiedSession) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return spied(ctx, s.d, "wait", c, func() (driver.Grant, error) { return s.everySession.Wait(ctx, c) })
}

func (s *spiedSession) Release(ctx context.Context, c driver.Claim) (bool, error) {
	return spied(ctx, s.d, "release", c, func() (bool, error) { return s.everySession.Release(ctx, c) })
}

func (s *spiedSession) Requeue(ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
	held := false
	g, err := spied(ctx, s.d, "requeue", next, func() (g driver.Grant, err error) {
		g, held, err = s.everySession.Requeue(ctx, old, next)
		return g, err
	})
	return g, held && err == nil, err
}

func (s *spiedSession) Renew(ctx context.Context) (driver.Renewal, error) {
	return spied(ctx, s.d, "renew", driver.Claim{}, func() (driver.Renewal, error) { return s.everySession.Renew(ctx) })
}

func (s *spiedSession) Close(ctx context.Context) error {
	_, err := spied(ctx, s.d, "close", driver.Claim{}, func() (struct{}, error) { return struct{}{}, s.everySession.Close(ctx) })
	return err
}

func slow(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
