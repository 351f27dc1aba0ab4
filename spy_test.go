package interlock_test

import (
	"context"
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

// spy is a driver that a test can look over the shoulder of: before is called ahead of every request and may fail it,
// after when it was answered. op is the method's name in lower case.
type spy struct {
	*memlock.Driver

	mu     sync.Mutex
	calls  map[string]int
	before func(ctx context.Context, op string, c driver.Claim) error
	after  func(ctx context.Context, op string, c driver.Claim)
	opened func(driver.Spec)
}

func (d *spy) around(ctx context.Context, op string, c driver.Claim, call func() error) error {
	d.mu.Lock()
	if d.calls == nil {
		d.calls = map[string]int{}
	}
	d.calls[op]++
	before, after := d.before, d.after
	d.mu.Unlock()
	if before != nil {
		if err := before(ctx, op, c); err != nil {
			return err
		}
	}
	err := call()
	if after != nil {
		after(ctx, op, c)
	}
	return err
}

func (d *spy) ahead(before func(ctx context.Context, op string, c driver.Claim) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before = before
}

func (d *spy) behind(after func(ctx context.Context, op string, c driver.Claim)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.after = after
}

func (d *spy) count(op string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[op]
}

func (d *spy) Open(ctx context.Context, spec driver.Spec) (s driver.Session, err error) {
	if d.opened != nil {
		d.opened(spec)
	}
	err = d.around(ctx, "open", driver.Claim{}, func() error {
		s, err = d.Driver.Open(ctx, spec)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &spied{s.(everySession), d}, nil
}

func slow(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

type spied struct {
	everySession
	d *spy
}

func (s *spied) Acquire(ctx context.Context, c driver.Claim) (g driver.Grant, err error) {
	err = s.d.around(ctx, "acquire", c, func() error {
		g, err = s.everySession.Acquire(ctx, c)
		return err
	})
	return g, err
}

func (s *spied) Wait(ctx context.Context, c driver.Claim) (g driver.Grant, err error) {
	err = s.d.around(ctx, "wait", c, func() error {
		g, err = s.everySession.Wait(ctx, c)
		return err
	})
	return g, err
}

func (s *spied) Release(ctx context.Context, c driver.Claim) (held bool, err error) {
	err = s.d.around(ctx, "release", c, func() error {
		held, err = s.everySession.Release(ctx, c)
		return err
	})
	return held, err
}

func (s *spied) Requeue(ctx context.Context, old, next driver.Claim) (g driver.Grant, held bool, err error) {
	err = s.d.around(ctx, "requeue", next, func() error {
		g, held, err = s.everySession.Requeue(ctx, old, next)
		return err
	})
	return g, held, err
}

func (s *spied) Renew(ctx context.Context) (r driver.Renewal, err error) {
	err = s.d.around(ctx, "renew", driver.Claim{}, func() error {
		r, err = s.everySession.Renew(ctx)
		return err
	})
	return r, err
}

func (s *spied) Close(ctx context.Context) error {
	return s.d.around(ctx, "close", driver.Claim{}, func() error { return s.everySession.Close(ctx) })
}
