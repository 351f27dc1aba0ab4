package memcachedlock

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
)

// A claim that was let in while a renewal passed over it, since it was one that waits, is renewed
// before its Wait returns; and only such a one.
func TestRenewalPassesOverWhoWaits(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	d, err := New(t.Context(), []string{server.Addr()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close(t.Context()) }()
	for name, began := range map[string]time.Duration{"before": -time.Hour, "meanwhile": time.Hour} {
		opened, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		s := opened.(*session)
		s.began = time.Now().Add(began)
		c := driver.Claim{ID: driver.NewID(), Name: name, Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Queue: true}
		s.claims.Of(c.ID, s.fresh(c, "interlock:"+name))
		g, err := s.Wait(t.Context(), c)
		if err != nil || !g.Held {
			t.Fatalf("Wait: %+v, %v", g, err)
		}
		mine := s.claims[c.ID]
		added := g.Fence % uint64(time.Second/time.Microsecond) / driver.Stride // its version then: see token
		if (mine.at.CAS > added) != (began > 0) {
			t.Errorf("%s: added as version %d, and its item is of version %d; was it to be renewed: %v", name, added, mine.at.CAS, began > 0)
		}
		if mine.passed {
			t.Errorf("%s: it is to be renewed again", name)
		}
		if _, err := s.Release(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
}
