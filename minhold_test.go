package interlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/memlock"
)

// A lease is lost because the store was silent for as long as trust lasts, and the store answers
// again before the claim's time is over. The claim stands, so the rest of the MinHold binds:
// whether its owner releases the lost lease or not.
func TestMinHold_IsKeptAfterALossThatTheClaimOutlived(t *testing.T) {
	for _, released := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			store := memlock.New()
			cut := store.Share()
			a, b := newClient(t, cut, nil), newClient(t, store, nil)
			l, start := hold(t, a, "m", interlock.MinHold(time.Minute)), time.Now()
			resume := cut.Stall()
			next := granted(t, b, "m")
			told(t, l)
			resume() // a grace before the claim would be over
			if released {
				_ = l.Release()
			}
			if d := (<-next).Sub(start); d != time.Minute {
				t.Errorf("after a loss at the end of trust, released %t: the next was granted after %v, want the MinHold of 1m0s", released, d)
			}
			_ = l.Release()
		})
	}
}
