package interlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// tap is a driver whose calls a test sees, holds up and spoils on their way to the store and back.
type tap struct {
	*memlock.Driver
	before func(op string, c driver.Claim) error            // an error keeps the call from the store
	after  func(op string, c driver.Claim, err error) error // what the core hears

	mu    sync.Mutex
	calls []call
}

// call is one request, in the order in which they were made.
type call struct {
	op    string // open, acquire, wait, release, requeue, renew or close
	claim driver.Claim
}

func (d *tap) begin(op string, c driver.Claim) error {
	d.mu.Lock()
	d.calls = append(d.calls, call{op, c})
	d.mu.Unlock()
	if d.before == nil {
		return nil
	}
	return d.before(op, c)
}

func (d *tap) end(op string, c driver.Claim, err error) error {
	if d.after == nil {
		return err
	}
	return d.after(op, c, err)
}

// made returns the calls so far of the given kinds.
func (d *tap) made(ops ...string) (calls []call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.calls {
		for _, op := range ops {
			if c.op == op {
				calls = append(calls, c)
			}
		}
	}
	return calls
}

func (d *tap) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	if err := d.begin("open", driver.Claim{}); err != nil {
		return nil, err
	}
	s, err := d.Driver.Open(ctx, spec)
	if err = d.end("open", driver.Claim{}, err); err != nil {
		return nil, err
	}
	return &tappedSession{s, d}, nil
}

type tappedSession struct {
	driver.Session
	tap *tap
}

// tapped makes one call of a session; after an error of the hooks the core hears nothing else.
func tapped[T any](d *tap, op string, c driver.Claim, do func() (T, error)) (v T, err error) {
	var none T
	if err := d.begin(op, c); err != nil {
		return none, err
	}
	v, err = do()
	if err = d.end(op, c, err); err != nil {
		return none, err
	}
	return v, nil
}

func (s *tappedSession) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return tapped(s.tap, "acquire", c, func() (driver.Grant, error) { return s.Session.Acquire(ctx, c) })
}

func (s *tappedSession) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return tapped(s.tap, "wait", c, func() (driver.Grant, error) { return s.Session.Wait(ctx, c) })
}

func (s *tappedSession) Release(ctx context.Context, c driver.Claim) (bool, error) {
	return tapped(s.tap, "release", c, func() (bool, error) { return s.Session.Release(ctx, c) })
}

func (s *tappedSession) Requeue(ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
	held := false
	g, err := tapped(s.tap, "requeue", next, func() (g driver.Grant, err error) {
		g, held, err = s.Session.(driver.Requeuer).Requeue(ctx, old, next)
		return g, err
	})
	return g, held && err == nil, err
}

func (s *tappedSession) Renew(ctx context.Context) (driver.Renewal, error) {
	return tapped(s.tap, "renew", driver.Claim{}, func() (driver.Renewal, error) { return s.Session.Renew(ctx) })
}

func (s *tappedSession) Close(ctx context.Context) error {
	_, err := tapped(s.tap, "close", driver.Claim{}, func() (struct{}, error) { return struct{}{}, s.Session.Close(ctx) })
	return err
}

func (s *tappedSession) Lost() <-chan driver.Loss { return s.Session.(driver.LossNotifier).Lost() }

func (s *tappedSession) Nudge() <-chan struct{} { return s.Session.(driver.Nudger).Nudge() }

// bubble runs f in a bubble of its own time. Leases are renewed for ever, so a bubble in which somebody waits for what
// never comes does not end by itself: after two of its hours it panics.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		watchdog := time.AfterFunc(2*time.Hour, func() { panic(t.Name() + ": still waiting after two hours") })
		t.Cleanup(func() { watchdog.Stop() })
		f(t)
	})
}

// lock is Lock that must succeed.
func lock(ctx context.Context, t *testing.T, m interface {
	Lock(context.Context) (*interlock.Lease, error)
},
) *interlock.Lease {
	t.Helper()
	return must[*interlock.Lease](t)(m.Lock(ctx))
}

// release is Release that must succeed.
func release(t *testing.T, leases ...*interlock.Lease) {
	t.Helper()
	for _, l := range leases {
		if err := l.Release(); err != nil {
			t.Errorf("release: %v", err)
		}
	}
}

// attempt is a Lock that goes on in the background.
type attempt struct {
	lease *interlock.Lease
	err   error
	done  chan struct{}
}

func background(lock func() (*interlock.Lease, error)) *attempt {
	a := &attempt{done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.lease, a.err = lock()
	}()
	return a
}

// over reports whether it has ended.
func (a *attempt) over() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// wait returns the lease that the attempt got.
func (a *attempt) wait(t *testing.T) *interlock.Lease {
	t.Helper()
	<-a.done
	if a.err != nil {
		t.Fatal(a.err)
	}
	return a.lease
}

// claims is who stands in the store's line of a name.
func claims(t *testing.T, store *memlock.Driver, name string) []driver.Holder {
	t.Helper()
	l, err := store.Line(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	return l.Claims
}

// matches fails unless err matches all of the targets.
func matches(t *testing.T, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("got %v, want an error that matches %q", err, target)
		}
	}
}
