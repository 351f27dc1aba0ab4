package interlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// The same for the opening of a session. No lease depends on that, for each is acquired later; what a renewal that fails says
// of the trust that is left does.
func TestL05_TrustCountsFromTheOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, r, start := &spy{Driver: memlock.New()}, &traces{}, time.Now()
		d.behind(func(_ context.Context, op string, _ driver.Claim) {
			if op == "open" {
				time.Sleep(2 * time.Second)
			}
		})
		r.during = func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			if got := r.renewed[len(r.renewed)-1]; got.Err != nil && time.Since(start)+got.Trust != 9*time.Second {
				t.Errorf("open answered 2 s late: trust until %v after it was sent, want 9s, which is TTL - grace", time.Since(start)+got.Trust)
			}
		}
		c := newClient(t, d, &interlock.Options{TTL: 10 * time.Second, Grace: time.Second, Tracer: r})
		l := hold(t, c, "m")
		resume := d.Stall()
		defer resume()
		told(t, l)
		synctest.Wait()
		if len(r.renewed) == 0 {
			t.Error("no renewal has failed")
		}
	})
}
