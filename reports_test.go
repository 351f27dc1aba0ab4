package interlock_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/memlock"
)

// shut is a log that blocks until it is opened, and then hears everything.
type shut struct {
	heard
	open chan struct{}
}

func (h *shut) Handle(_ context.Context, r slog.Record) error {
	<-h.open
	var text strings.Builder
	fmt.Fprintf(&text, "%d %s", r.Time.Unix(), r.Message)
	r.Attrs(func(a slog.Attr) bool { fmt.Fprintf(&text, " %s=%v", a.Key, a.Value); return true })
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, text.String())
	return nil
}

func (h *shut) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h *shut) WithGroup(string) slog.Handler      { return h }

// loses has a client lose n leases, one a second.
func loses(t *testing.T, c *interlock.Client, store *memlock.Driver, n int) {
	t.Helper()
	for range n {
		l := hold(t, c, "m")
		store.Lose("m")
		matches(t, l.Err(), interlock.ErrLost)
		matches(t, l.Release(), interlock.ErrLost)
		time.Sleep(time.Second)
	}
}

// What a log that blocked was not told of is counted, and said where it would have stood: what it
// hears is in order, with the times at which it happened.
func TestReports_OfALogThatBlocks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const all, fit = 300, 1 + 256 // one is being told
		store, log := memlock.New(), &shut{open: make(chan struct{})}
		c := newClient(t, store, &interlock.Options{Logger: slog.New(log)})
		start := time.Now().Unix()
		loses(t, c, store, all)
		close(log.open)
		synctest.Wait()
		loses(t, c, store, 1)
		synctest.Wait()
		log.mu.Lock()
		defer log.mu.Unlock()
		if len(log.all) != fit+2 {
			t.Fatalf("%d reports, want the %d that fitted, how many did not, and the next", len(log.all), fit)
		}
		at := int64(-1)
		for i, text := range log.all {
			var when int64
			if _, err := fmt.Sscan(text, &when); err != nil || when < at {
				t.Errorf("report %d after one of %d: %s", i, at, text)
			}
			switch at = when; {
			case i == fit && !strings.HasSuffix(text, fmt.Sprintf("was not told of everything omitted=%d", all-fit)):
				t.Errorf("after those that fitted: %s", text)
			case i < fit && when != start+int64(i):
				t.Errorf("report %d is of %d seconds later, want that of its loss: %s", i, when-start, text)
			}
		}
	})
}

// A tracer that blocks holds up neither the log, nor the end of a lease, nor whoever waits; and
// what it was not told of is in the log.
func TestReports_OfATracerThatBlocks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		open, log := make(chan struct{}), &heard{}
		store := memlock.New()
		r := &traces{during: func() { <-open }}
		c := newClient(t, store, &interlock.Options{Logger: slog.New(log), Tracer: r})
		l := hold(t, c, "kept")
		time.Sleep(time.Minute) // it is being told of a renewal
		loses(t, c, store, 300)
		live(t, l)
		if n := log.count("lease lost"); n != 300 {
			t.Errorf("the log heard of %d losses while the tracer blocked, want 300", n)
		}
		if n := len(r.holds()); n != 0 {
			t.Errorf("told of %d ends while it blocks", n)
		}
		close(open)
		synctest.Wait()
		if n := log.count("the tracer blocked"); n != 1 {
			t.Errorf("the log heard %d times that the tracer was not told of everything, want once", n)
		}
		if n := len(r.holds()); n == 0 || n > 256 {
			t.Errorf("told of %d ends after it blocked, want those that fitted", n)
		}
		release(t, l)
	})
}

// Close tells what there is to tell, and waits for nobody who blocks for long.
func TestReports_CloseWaitsForAMoment(t *testing.T) {
	for _, blocks := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			store, log := memlock.New(), &shut{open: make(chan struct{})}
			slowly := slog.New(log)
			if !blocks {
				time.AfterFunc(time.Minute+10*time.Millisecond, func() { close(log.open) })
			}
			c, err := interlock.New(store, &interlock.Options{Logger: slowly, Tracer: &traces{during: func() { <-log.open }}})
			if err != nil {
				t.Fatal(err)
			}
			l := hold(t, c, "m")
			time.Sleep(time.Minute)
			store.Lose("m")
			matches(t, l.Release(), interlock.ErrLost)
			start := time.Now()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			took := time.Since(start)
			log.mu.Lock()
			told := len(log.all)
			log.mu.Unlock()
			switch {
			case blocks && took != 100*time.Millisecond:
				t.Errorf("Close took %v beside a log and a tracer that block, want 50 ms for each", took)
			case !blocks && (took != 10*time.Millisecond || told != 1):
				t.Errorf("Close took %v, and %d reports were told by then; want 10 ms and the one there is", took, told)
			}
			if blocks {
				close(log.open)
			}
			time.Sleep(time.Second) // and the end of the bubble sees that no goroutine is left
		})
	}
}

// asking is a context of a user's own whose methods ask a lease of the same client.
type asking struct {
	context.Context
	asked func(method string)
}

func (a asking) Err() error                  { a.asked("Err"); return a.Context.Err() }
func (a asking) Done() <-chan struct{}       { a.asked("Done"); return a.Context.Done() }
func (a asking) Deadline() (time.Time, bool) { a.asked("Deadline"); return a.Context.Deadline() }
func (a asking) Value(key any) any           { a.asked("Value"); return a.Context.Value(key) }

// askingAfter is one that package context asks to call functions at its end.
type askingAfter struct{ asking }

// Value knows nothing of the context inside, so that package context takes this one for what it is.
func (a askingAfter) Value(any) any { a.asked("Value"); return nil }

func (a askingAfter) AfterFunc(f func()) func() bool {
	a.asked("AfterFunc")
	stop := context.AfterFunc(a.Context, f)
	return func() bool { a.asked("stop"); return stop() }
}

// No method of a user's context is called under a mutex: it may ask a lease, for which that mutex
// is needed.
func TestContext_OfAUserIsAskedUnderNoMutex(t *testing.T) {
	var found atomic.Bool // once is enough: to find it takes seconds
	for _, after := range []bool{false, true} {
		for what, do := range map[string]func(t *testing.T, store *memlock.Driver, other, c *interlock.Client, ctx context.Context, cancel func()){
			"a free lock": func(t *testing.T, _ *memlock.Driver, _, c *interlock.Client, ctx context.Context, _ func()) {
				release(t, lock(ctx, t, c.Mutex("m")))
			},
			"a wait": func(t *testing.T, _ *memlock.Driver, other, c *interlock.Client, ctx context.Context, _ func()) {
				l := hold(t, other, "m")
				time.AfterFunc(time.Second, func() { release(t, l) })
				release(t, lock(ctx, t, c.Mutex("m")))
			},
			"a wait that ends": func(t *testing.T, _ *memlock.Driver, other, c *interlock.Client, ctx context.Context, cancel func()) {
				l := hold(t, other, "m")
				time.AfterFunc(time.Second, cancel)
				_, err := c.Mutex("m").Lock(ctx)
				matches(t, err, context.Canceled)
				release(t, l)
			},
			"a store that fails": func(t *testing.T, store *memlock.Driver, _, c *interlock.Client, ctx context.Context, cancel func()) {
				store.Fail(errReset)
				time.AfterFunc(time.Second, func() { store.Fail(nil) })
				release(t, lock(ctx, t, c.Mutex("m")))
			},
			"a store that is silent": func(t *testing.T, store *memlock.Driver, _, c *interlock.Client, ctx context.Context, cancel func()) {
				resume := store.Stall()
				time.AfterFunc(time.Second, cancel)
				_, err := c.Mutex("m").Lock(ctx)
				matches(t, err, context.Canceled)
				resume()
			},
			"a client that is closed beside its request": func(t *testing.T, store *memlock.Driver, _, c *interlock.Client, ctx context.Context, _ func()) {
				resume := store.Stall()
				a := background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(ctx) })
				synctest.Wait()
				_ = c.Close() // which is not confirmed
				<-a.done
				matches(t, a.err, interlock.ErrClosed)
				resume()
			},
			"several at once": func(t *testing.T, _ *memlock.Driver, _, c *interlock.Client, ctx context.Context, _ func()) {
				var all []*attempt
				for range 20 {
					all = append(all, background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(ctx) }))
				}
				for range all {
					for _, a := range all {
						if a.over() && a.lease != nil {
							release(t, a.lease)
							a.lease = nil
						}
					}
					synctest.Wait()
				}
			},
			"several names": func(t *testing.T, _ *memlock.Driver, _, c *interlock.Client, ctx context.Context, _ func()) {
				l := lock(ctx, t, c.Multi([]string{"a", "b"}))
				_, err := c.Mutex("a").Lock(l.Context())
				matches(t, err, interlock.ErrDeadlock)
				release(t, l)
			},
			"an election": func(t *testing.T, _ *memlock.Driver, _, c *interlock.Client, ctx context.Context, _ func()) {
				if err := c.Election("e").Lead(ctx, func(context.Context) error { return nil }); err != nil {
					t.Error(err)
				}
			},
		} {
			t.Run(fmt.Sprintf("%s %v", what, after), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					store := memlock.New()
					other, c := newClient(t, store.Share(), nil), newClient(t, store, nil)
					l := hold(t, c, "asked")
					base, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					of := asking{base, func(method string) {
						if found.Load() {
							return
						}
						if interlock.PoolsLocked(c) {
							found.Store(true)
							t.Errorf("%s: %s of the user's context is called under a mutex of the client", what, method)
							return
						}
						_, _ = l.Err(), l.Until()
					}}
					var ctx context.Context = of
					if after {
						ctx = askingAfter{of}
					}
					do(t, store, other, c, ctx, cancel)
					_ = l.Release()
				})
			})
		}
	}
}
