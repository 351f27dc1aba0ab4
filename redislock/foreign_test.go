//go:build linux || darwin

package redislock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/foreigntest"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	_ "github.com/interlock-go/interlock/redislock"
)

// A lock of another library and one of ours with its key as the name are the same lock. The tests
// take it with the real libraries, in processes of their own.

const (
	ages = time.Minute      // a TTL that no test waits for
	soon = 10 * time.Second // for what has to wait for no TTL, on a machine that has other things to do
)

// shapes are the ways in which ours take a name. The lock of another library excludes each of them,
// and each of them it.
var shapes = []struct {
	name      string
	take, try take
}{
	{
		"mutex",
		func(ctx context.Context, c *interlock.Client, name string) (*interlock.Lease, error) {
			return c.Mutex(name).Lock(ctx)
		},
		func(ctx context.Context, c *interlock.Client, name string) (*interlock.Lease, error) {
			return c.Mutex(name).TryLock(ctx)
		},
	},
	{
		"reader",
		func(ctx context.Context, c *interlock.Client, name string) (*interlock.Lease, error) {
			return c.RWMutex(name).RLock(ctx)
		},
		func(ctx context.Context, c *interlock.Client, name string) (*interlock.Lease, error) {
			return c.RWMutex(name).TryRLock(ctx)
		},
	},
	{
		"permit",
		func(ctx context.Context, c *interlock.Client, name string) (*interlock.Lease, error) {
			return c.Semaphore(name, 2).Acquire(ctx, 1)
		},
		func(ctx context.Context, c *interlock.Client, name string) (*interlock.Lease, error) {
			return c.Semaphore(name, 2).TryAcquire(ctx, 1)
		},
	},
}

// While another library holds, ours are refused or wait, leave its value alone and get in when it
// has released. It can extend and release as if nobody waited.
func TestForeignHolderKeepsOursOut(t *testing.T) {
	m := newMeeting(t)
	client := m.open(t, nil)
	for _, kind := range foreigntest.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			theirs := m.theirs(t, kind, "held by "+string(kind), ages)
			name := theirs.Key()
			for _, shape := range shapes {
				value := theirs.MustLock(t, 0)
				_, err := shape.try(t.Context(), client, name)
				var held *interlock.HeldError
				if !errors.Is(err, interlock.ErrHeld) || !errors.As(err, &held) || held.Holder == nil || !held.Holder.Foreign {
					t.Errorf("%s: a try while another program holds: %v, want %v by another program", shape.name, err, interlock.ErrHeld)
				}

				var got *interlock.Lease
				waiting := make(chan error, 1)
				go func() {
					ctx, cancel := context.WithTimeout(t.Context(), ages/2)
					defer cancel()
					var err error
					got, err = shape.take(ctx, client, name)
					waiting <- err
				}()
				m.stand(t, name, 2)
				if err := theirs.Extend(2 * ages); err != nil {
					t.Errorf("%s waits: %v", shape.name, err)
				}
				if stored := m.get(t, name); stored != value {
					t.Errorf("%s waits: the name has %q, want %q, which another program wrote", shape.name, stored, value)
				}
				if len(waiting) > 0 {
					t.Fatalf("%s: does not wait: %v", shape.name, <-waiting)
				}

				start := time.Now()
				if err := theirs.Unlock(); err != nil {
					t.Errorf("%s waits: %v", shape.name, err)
				}
				if err := <-waiting; err != nil {
					t.Fatalf("%s, after waiting for the other program: %v", shape.name, err)
				}
				if took := time.Since(start); took > soon && !testing.Short() {
					t.Errorf("%s: got in %v after the other program had released, want %v at most", shape.name, took, soon)
				}
				m.release(t, got)
			}
		})
	}
}

// While ours hold, be they a mutex, readers or permits, another library is kept out; when the last
// of them has released, it gets in.
func TestOursKeepForeignOut(t *testing.T) {
	m := newMeeting(t)
	client, second := m.open(t, nil), m.open(t, nil)
	for _, kind := range foreigntest.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			theirs := m.theirs(t, kind, "asked for by "+string(kind), ages)
			name := theirs.Key()
			for _, shape := range shapes {
				leases := []*interlock.Lease{m.hold(t, client, name, shape.take)}
				if shape.name != "mutex" { // another one shares it
					leases = append(leases, m.hold(t, second, name, shape.take))
				}
				for len(leases) > 1 {
					theirs.MustNotLock(t, "our "+shape.name)
					m.release(t, leases[0])
					leases = leases[1:]
				}
				theirs.MustNotLock(t, "our "+shape.name)

				waiting := make(chan error, 1)
				go func() {
					_, err := theirs.Lock(soon)
					waiting <- err
				}()
				m.release(t, leases[0])
				if err := <-waiting; err != nil {
					t.Fatalf("%s has released: %v", shape.name, err)
				}
				theirs.MustUnlock(t)
			}
		})
	}
}

// meeting is a server where our locks and those of other libraries meet.
type meeting struct{ *servertest.Server }

func newMeeting(t *testing.T) meeting {
	t.Helper()
	return meeting{servertest.Redis(t)}
}

// open opens a client of ours, for the test.
func (m meeting) open(t *testing.T, o *interlock.Options) *interlock.Client {
	t.Helper()
	return m.openWith(t, "", o)
}

// openWith opens a client with these parameters in the URL.
func (m meeting) openWith(t *testing.T, parameters string, o *interlock.Options) *interlock.Client {
	t.Helper()
	return redistest.OpenClient(t, m.URL()+parameters, o)
}

// theirs starts a client of another library.
func (m meeting) theirs(t *testing.T, kind foreigntest.Kind, name string, ttl time.Duration) *foreigntest.Client {
	t.Helper()
	return foreigntest.Start(t, kind, []string{m.Addr()}, name, ttl)
}

// take takes a name in a way of ours.
type take func(ctx context.Context, c *interlock.Client, name string) (*interlock.Lease, error)

// hold takes a name that is free, or becomes free without anybody's TTL.
func (m meeting) hold(t *testing.T, c *interlock.Client, name string, take take) *interlock.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	lease, err := take(ctx, c, name)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func (m meeting) release(t *testing.T, lease *interlock.Lease) {
	t.Helper()
	if err := lease.Release(); err != nil {
		t.Error(err)
	}
}

// get returns what is stored at the name.
func (m meeting) get(t *testing.T, name string) string {
	t.Helper()
	return m.MustDo(t, "GET", name)
}

// stand waits until so many stand at the name, holders and waiters.
func (m meeting) stand(t *testing.T, name string, n int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(soon); ; <-tick.C {
		claims := redistest.Claims(t, m.URL(), name)
		if len(claims) == n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("at %q stand %+v after %v, want %d", name, claims, soon, n)
		}
	}
}
