package interlock_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/memlock"
)

// A20: closing hangs, or leaves somebody behind who renews.
func TestA20_CloseIsBoundedAndLeavesNobody(t *testing.T) {
	for _, stall := range []bool{false, true} {
		bubble(t, func(t *testing.T) { // which panics if a goroutine is left
			d := &spy{Driver: memlock.New()}
			c := must[*interlock.Client](t)(interlock.New(d, nil))
			for i := range 20 {
				lock(t.Context(), t, c.Mutex(fmt.Sprint(i), interlock.Grace(time.Second)))
			}
			lock(t.Context(), t, c.Mutex("isolated", interlock.Isolated(), interlock.Grace(time.Second)))
			waits := []*attempt{
				background(func() (*interlock.Lease, error) { return c.Mutex("1").Lock(t.Context()) }),
				background(func() (*interlock.Lease, error) { return c.RWMutex("2").RLock(t.Context()) }),
			}
			synctest.Wait()
			if stall {
				defer d.Driver.Stall()()
				waits = append(waits, background(func() (*interlock.Lease, error) { return c.Mutex("asking").Lock(t.Context()) }))
				synctest.Wait()
			}
			start := time.Now()
			var ended atomic.Int32
			for _, w := range waits {
				go func() {
					<-w.done
					matches(t, w.err, interlock.ErrClosed)
					if time.Since(start) == 0 {
						ended.Add(1)
					}
				}()
			}
			closed := make(chan error, 1)
			go func() { closed <- c.Close() }()
			select {
			case err := <-closed:
				if stall && !errors.Is(err, interlock.ErrUncertain) || !stall && err != nil {
					t.Errorf("stalled %t: closed: %v", stall, err)
				}
			case <-time.After(time.Minute):
				t.Fatalf("stalled %t: Close has not returned after a minute, want three seconds at most", stall)
			}
			if took, most := time.Since(start), 3*time.Second; took > most || !stall && took != time.Second {
				t.Errorf("stalled %t: took %v", stall, took)
			}
			if n := int(ended.Load()); n != len(waits) {
				t.Errorf("stalled %t: %d of %d waits ended at once", stall, n, len(waits))
			}
			renewals := d.count("renew")
			time.Sleep(time.Hour)
			if n := d.count("renew") - renewals; n != 0 {
				t.Errorf("stalled %t: %d renewals after Close", stall, n)
			}
			if err := c.Close(); err != nil {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// The same without a bubble, in which it can be said.
func TestA20_NoGoroutineOutlivesClose(t *testing.T) {
	before := runtime.NumGoroutine()
	c := must[*interlock.Client](t)(interlock.New(memlock.New(), nil))
	release(t, lock(t.Context(), t, c.Mutex("m")), lock(t.Context(), t, c.Mutex("isolated", interlock.Isolated())))
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(30 * time.Second); runtime.NumGoroutine() > before; <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines outlive Close by half a minute", runtime.NumGoroutine()-before)
		}
	}
}
