package interlock_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) } // every lost lease is a line of the log

// These helpers make tests read as the sentences that they check.

// hold takes the mutex of this name, which must be free.
func hold(t *testing.T, c *interlock.Client, name string, o ...interlock.LockOption) *interlock.Lease {
	t.Helper()
	return must[*interlock.Lease](t)(c.Mutex(name, o...).Lock(t.Context()))
}

// granted locks the mutex of this name in the background, and yields when that was granted. The lease is released.
func granted(t *testing.T, c *interlock.Client, name string, o ...interlock.LockOption) <-chan time.Time {
	t.Helper()
	at := make(chan time.Time, 1)
	go func() {
		defer close(at)
		l, err := c.Mutex(name, o...).Lock(t.Context())
		if err != nil {
			t.Errorf("the next: %v", err)
			return
		}
		now := time.Now()
		if err := l.Release(); err != nil {
			t.Errorf("release of the next: %v", err)
		}
		at <- now
	}()
	return at
}

// told waits until a lease is over and returns when that was. A lease that goes on for two days will not end.
func told(t *testing.T, l *interlock.Lease) time.Time {
	t.Helper()
	select {
	case <-l.Context().Done():
	case <-time.After(48 * time.Hour):
		t.Fatal("the lease's context did not end within two days")
	}
	if cause := context.Cause(l.Context()); !errors.Is(cause, interlock.ErrLost) || !errors.Is(l.Err(), interlock.ErrLost) {
		t.Fatalf("cause %v, Err %v: want ErrLost", cause, l.Err())
	}
	return time.Now()
}

// live fails the test if the lease is over.
func live(t *testing.T, l *interlock.Lease) {
	t.Helper()
	if err := l.Err(); err != nil || l.Context().Err() != nil {
		t.Fatalf("lease is over: %v", err)
	}
}

// standing returns what stands in the store's line of name, as seen by a driver whose wire is whole.
func standing(t *testing.T, store *memlock.Driver, name string) []driver.Holder {
	t.Helper()
	return must[driver.Line](t)(store.Line(t.Context(), name)).Claims
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

// ahead sets what is called ahead of every request from now on.
func (d *spy) ahead(before func(ctx context.Context, op string, c driver.Claim) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before = before
}

// behind sets what is called when a request was answered.
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

// slow is a wire that takes d for a request.
func slow(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// everySession is what the sessions of memlock can do.
type everySession interface {
	driver.Session
	driver.Requeuer
	driver.LossNotifier
	driver.Nudger
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
