package interlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

func TestHealth(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		c := must[*interlock.Client](t)(interlock.New(store, nil))
		for range 2 {
			if err := c.Health(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		broken := errors.New("connection refused")
		store.Fail(broken)
		matches(t, c.Health(t.Context()), interlock.ErrUnavailable, broken)
		store.Fail(nil)
		resume := store.Stall()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		matches(t, c.Health(ctx), interlock.ErrUnavailable, context.DeadlineExceeded)
		resume()
		store.EndSessions()
		synctest.Wait()
		if err := c.Health(t.Context()); err != nil {
			t.Errorf("after the session was ended: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		matches(t, c.Health(t.Context()), interlock.ErrClosed)
	})
}

func TestKey_IsTheDriversWord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newClient(t, keyed{memlock.New()}, nil)
		if got := c.Key("a b"); got != "shop:a%20b" {
			t.Errorf("%q", got)
		}
	})
}

type keyed struct{ *memlock.Driver }

func (keyed) Key(name string) string { return "shop:" + strings.ReplaceAll(name, " ", "%20") }

func TestClient_KeepsNothingOfWhatIsOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, a, b := two(t)
		held := lock(t.Context(), t, b.Mutex("held"))
		use := func(name string) {
			for _, o := range [][]interlock.LockOption{{}, {interlock.Isolated()}, {interlock.TTL(time.Second)}, {interlock.Wait(10 * time.Millisecond)}} {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				leases := []func() (*interlock.Lease, error){
					func() (*interlock.Lease, error) { return a.Mutex(name, o...).Lock(ctx) },
					func() (*interlock.Lease, error) { return a.Mutex(name, o...).TryLock(ctx) },
					func() (*interlock.Lease, error) { return a.RWMutex(name, o...).RLock(ctx) },
					func() (*interlock.Lease, error) { return a.Multi([]string{name, "other"}, o...).Lock(ctx) },
				}
				for _, lock := range leases {
					if l, err := lock(); err == nil {
						_ = l.Release()
					}
				}
				cancel()
			}
		}
		use("free")
		use("held")
		store.Fail(errors.New("connection reset"))
		use("free")
		store.Fail(nil)
		resume := store.Stall()
		use("free")
		resume()
		time.Sleep(20 * time.Second) // a TTL
		synctest.Wait()
		if isolated, lines, claims := interlock.Remains(a); isolated+lines+claims != 0 {
			t.Errorf("%d isolated sessions, %d lines and %d claims remain", isolated, lines, claims)
		}
		release(t, held)
	})
}

// Every session that was opened is closed: also the one that came when its only waiter had left,
// and the one that the store had ended.
func TestClient_ClosesEverySession(t *testing.T) {
	for name, play := range map[string]func(t *testing.T, d *spy, c *interlock.Client){
		"the waiter left while it was opened": func(t *testing.T, _ *spy, c *interlock.Client) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			l, err := c.Mutex("m", interlock.Isolated()).Lock(ctx)
			if err == nil { // the claim was granted in the very moment
				release(t, l)
			} else if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("lock: %v", err)
			}
		},
		"the store ended it": func(t *testing.T, d *spy, c *interlock.Client) {
			l := lock(t.Context(), t, c.Mutex("m"))
			d.EndSessions()
			<-l.Context().Done()
			_ = l.Release()
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				d := &spy{Driver: memlock.New()}
				d.behind(func(op string, _ driver.Claim, err error) error {
					if op == "open" {
						time.Sleep(2 * time.Second)
					}
					return err
				})
				c := newClient(t, d, nil)
				play(t, d, c)
				time.Sleep(3 * time.Second)
				if opened, closed := d.count("open"), d.count("close"); opened != 1 || closed != opened {
					t.Errorf("%d sessions opened, %d closed, want 1 of each", opened, closed)
				}
			})
		})
	}
}
