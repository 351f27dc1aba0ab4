package interlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/memlock"
)

// Whoever is first in a client awaits the claim that stands at the store, for all who want the name
// here. When it goes, the claim keeps its place, and the next one has it.
func TestLock_WhoAwaitsForOthersGoes(t *testing.T) {
	for name, leave := range map[string]func(cancel context.CancelFunc){
		"one after the other": func(cancel context.CancelFunc) { cancel(); synctest.Wait() },
		"at once":             func(cancel context.CancelFunc) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memlock.New()
				holder, waiters, last := newClient(t, store, nil), newClient(t, store, nil), newClient(t, store, nil)
				held := must[*interlock.Lease](t)(holder.Mutex("x").Lock(t.Context()))

				var cancels [3]context.CancelFunc
				gone := make(chan error, len(cancels))
				for i := range cancels {
					ctx, cancel := context.WithCancel(t.Context())
					cancels[i] = cancel
					go func() {
						_, err := waiters.Mutex("x").Lock(ctx)
						gone <- err
					}()
					synctest.Wait()
				}
				order := make(chan string, 2)
				var all sync.WaitGroup
				for who, c := range []*interlock.Client{waiters, last} {
					all.Go(func() {
						name := []string{"the claim that stood", "the one behind it"}[who]
						l, err := c.Mutex("x", interlock.Wait(time.Hour)).Lock(t.Context())
						if err != nil {
							t.Errorf("%s is not granted in an hour: %v", name, err)
							return
						}
						order <- name
						release(t, l)
					})
					synctest.Wait()
				}
				for _, cancel := range cancels {
					leave(cancel)
				}
				for range cancels {
					if err := <-gone; !errors.Is(err, context.Canceled) || !errors.Is(err, interlock.ErrHeld) {
						t.Errorf("a wait that was cancelled: %v", err)
					}
				}
				release(t, held)
				all.Wait()
				close(order)
				if first := <-order; first != "the claim that stood" {
					t.Errorf("granted first: %q, want the claim that stood", first)
				}
			})
		})
	}
}
