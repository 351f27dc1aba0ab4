package interlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

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
