package interlock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// traces keeps what a client tells its tracer.
type traces struct {
	mu      sync.Mutex
	started []interlock.WaitStart
	ended   []interlock.WaitEnd
	held    []interlock.HoldEnd
	renewed []interlock.Renewed
	during  func() // called by Renewed

	contexts []context.Context // of the ends
}

type traceKey struct{}

func (r *traces) WaitStart(ctx context.Context, d interlock.WaitStart) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started = append(r.started, d)
	return context.WithValue(ctx, traceKey{}, len(r.started))
}

func (r *traces) WaitEnd(ctx context.Context, d interlock.WaitEnd) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.contexts = append(r.contexts, ctx)
	r.ended = append(r.ended, d)
}

func (r *traces) HoldEnd(ctx context.Context, d interlock.HoldEnd) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.contexts = append(r.contexts, ctx)
	r.held = append(r.held, d)
}

func (r *traces) Renewed(_ context.Context, d interlock.Renewed) {
	r.mu.Lock()
	r.renewed = append(r.renewed, d)
	during := r.during
	r.mu.Unlock()
	if during != nil {
		during()
	}
}

func (r *traces) holds() []interlock.HoldEnd {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.held)
}

func TestTracer_IsToldOfWaitsAndHolds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		r := &traces{}
		a, b := newClient(t, store, nil), newClient(t, store.Share(), &interlock.Options{Tracer: r})
		first := lock(t.Context(), t, a.Mutex("m"))
		time.AfterFunc(3*time.Second, func() { release(t, first) })
		l := lock(t.Context(), t, b.Mutex("m"))
		if l.Context().Value(traceKey{}) != 1 {
			t.Error("the lease's context lacks what WaitStart put into it")
		}
		passed := background(func() (*interlock.Lease, error) { return b.Mutex("m").Lock(t.Context()) })
		synctest.Wait()
		time.Sleep(5 * time.Millisecond)
		fence := l.Fence()
		release(t, l)
		second := passed.wait(t)
		_, tryErr := b.Mutex("m").TryLock(t.Context())
		store.Lose("m")
		synctest.Wait()
		lost := second.Err()
		if told := r.holds(); len(told) != 2 || !errors.Is(told[1].Err, interlock.ErrLost) {
			t.Errorf("before the lost lease is released: %+v", told)
		}
		if err := second.Release(); !errors.Is(err, interlock.ErrLost) {
			t.Errorf("release of a lost lease: %v", err)
		}
		permit := must[*interlock.Lease](t)(b.Semaphore("s", 2).Acquire(t.Context(), 1))
		release(t, permit)
		release(t, must[*interlock.Lease](t)(b.Multi([]string{"y", "x"}).Lock(t.Context())))

		starts := []interlock.WaitStart{
			{Op: "lock", Name: "m", Kind: driver.Mutex},
			{Op: "lock", Name: "m", Kind: driver.Mutex},
			{Op: "try", Name: "m", Kind: driver.Mutex},
			{Op: "acquire", Name: "s", Kind: driver.Permit},
			{Op: "lock", Name: "x", Kind: driver.Mutex},
		}
		if !slices.Equal(r.started, starts) {
			t.Errorf("started: %+v", r.started)
		}
		ends := []interlock.WaitEnd{
			{Op: "lock", Name: "m", Kind: driver.Mutex, Waited: 3 * time.Second, Fence: fence, Result: interlock.Granted},
			{Op: "lock", Name: "m", Kind: driver.Mutex, Waited: 5 * time.Millisecond, Fence: fence + 1, Passed: true, Result: interlock.Passed},
			{Op: "try", Name: "m", Kind: driver.Mutex, Result: interlock.Held, Err: tryErr},
			{Op: "acquire", Name: "s", Kind: driver.Permit, Result: interlock.Granted},
			{Op: "lock", Name: "x", Kind: driver.Mutex, Result: interlock.Granted},
		}
		if !slices.Equal(r.ended, ends) {
			t.Errorf("ended:\n%+v, want\n%+v", r.ended, ends)
		}
		holds := []interlock.HoldEnd{
			{Name: "m", Kind: driver.Mutex, Held: 5 * time.Millisecond, Fence: fence},
			{Name: "m", Kind: driver.Mutex, Fence: fence + 1, Reason: interlock.LostGone, Err: lost},
			{Name: "s", Kind: driver.Permit},
		}
		if len(r.held) != 4 || !slices.Equal(r.held[:3], holds) || r.held[3].Name != "x" {
			t.Errorf("held:\n%+v, want\n%+v and that of x", r.held, holds)
		}
		for i, ctx := range r.contexts {
			if ctx.Value(traceKey{}) == nil {
				t.Errorf("end %d lacks what WaitStart put into its context", i)
			}
		}
	})
}

// Renewals do not wait for a tracer that blocks.
func TestTracer_ThatBlocksHoldsUpNoRenewal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		open, r := make(chan struct{}), &traces{}
		c := newClient(t, memlock.New(), &interlock.Options{Tracer: r})
		r.during = func() { <-open }
		l := lock(t.Context(), t, c.Mutex("m"))
		time.Sleep(time.Minute)
		if err := l.Err(); err != nil {
			t.Errorf("the lease of a client whose tracer blocks: %v", err)
		}
		close(open)
		_ = l.Release()
	})
}

// Hooks may use the lease: nothing is held while they are called.
func TestTracer_IsToldOfRenewalsAndMayAskTheLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		r := &traces{}
		c := newClient(t, store, &interlock.Options{TTL: 15 * time.Second, Grace: 3 * time.Second, Tracer: r})
		l := lock(t.Context(), t, c.Mutex("m"))
		other := lock(t.Context(), t, c.Mutex("n"))
		r.mu.Lock()
		r.during = func() { _, _, _ = l.Err(), l.Until(), c.Mutex("m").Err() }
		r.mu.Unlock()
		time.Sleep(time.Minute)
		resume := store.Stall()
		time.Sleep(time.Minute)
		resume()
		_, _ = l.Release(), other.Release()
		r.mu.Lock()
		defer r.mu.Unlock()
		good, bad := 0, 0
		for _, d := range r.renewed {
			if d.Err != nil {
				bad++
				continue
			}
			good++
			if d.Took == 0 && d.Trust != 12*time.Second {
				t.Errorf("%+v: want a trust of 12s, which is TTL - grace", d)
			}
			if d.Claims > 2 {
				t.Errorf("%+v: more claims than there are", d)
			}
		}
		if good < 12 || bad == 0 {
			t.Errorf("%d renewals succeeded and %d failed", good, bad)
		}
	})
}

// panicking is a tracer that panics when it is told of the end of a wait.
type panicking struct{ traces }

func (r *panicking) WaitEnd(ctx context.Context, d interlock.WaitEnd) {
	r.traces.WaitEnd(ctx, d)
	panic("no such series")
}

// A server recovers from the panic of a handler. What was granted to it meanwhile nobody would ever
// release.
func TestTracer_ThatPanicsLeavesNoLockHeld(t *testing.T) {
	for what, lock := range map[string]func(*interlock.Client, context.Context) (*interlock.Lease, error){
		"a mutex": func(c *interlock.Client, ctx context.Context) (*interlock.Lease, error) {
			return c.Mutex("x").Lock(ctx)
		},
		"of several": func(c *interlock.Client, ctx context.Context) (*interlock.Lease, error) {
			return c.Multi([]string{"w", "x"}).Lock(ctx)
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, r := memlock.New(), &panicking{}
				c := newClient(t, store, &interlock.Options{Tracer: r})
				func() {
					defer func() {
						if p := recover(); p != "no such series" {
							t.Errorf("want the tracer's panic: %v", p)
						}
					}()
					l, err := lock(c, t.Context())
					t.Errorf("want the tracer's panic: %v, %v", l, err)
				}()
				other := newClient(t, store.Share(), nil)
				l, err := other.Mutex("x").TryLock(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				_ = l.Release()
				if len(r.ended) != 1 || len(r.holds()) != 1 {
					t.Errorf("want the tracer told of the end of the lease, too: %v, %v", r.ended, r.holds())
				}
			})
		})
	}
}
