package memcachedlock_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
)

// Versions begin anew with the server, and tokens do not: TestM01_TheServerForgets. Within its life
// they grow with every grant, and stay what they are through renewals and marks.
func TestM07_TokensAreThoseOfTheGrant(t *testing.T) {
	t.Parallel()
	s := servertest.Memcached(t)
	a := storetest.Entered(t, storetest.Opened(t, s.URL()), time.Minute)
	last := uint64(0)
	for range 5 {
		c := mutex("job")
		g := a.Asks(c, true)
		if g.Fence < last+driver.Stride || g.Fence > driver.MaxFence {
			t.Errorf("token %d after %d", g.Fence, last)
		}
		last = g.Fence
		for range 2 {
			a.Loses()
			if again := a.Asks(c, true); again.Fence != g.Fence || a.Line("job").Fence != g.Fence {
				t.Errorf("asked again, token %d is %d, and shown as %d", g.Fence, again.Fence, a.Line("job").Fence)
			}
		}
		a.Leaves(c, true)
	}
}
