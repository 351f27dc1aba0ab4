package memcachedlock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/memcache"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
)

// A time that the server would take for a date is refused, and so is one that its clock is too
// coarse for.
func TestM05_Times(t *testing.T) {
	t.Parallel()
	s := servertest.Memcached(t)
	d := storetest.Opened(t, s.URL())
	for _, ttl := range []time.Duration{0, time.Second, 3*time.Second - 1, d.Traits().MaxTTL + 1, 31 * 24 * time.Hour} {
		if _, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: ttl}); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "want 3s to") {
			t.Errorf("TTL %v: %v", ttl, err)
		}
	}
	a := storetest.Entered(t, d, d.Traits().MaxTTL)
	a.Asks(mutex("long"), true)
	if left := beside(t, s.Addr()).says(memcache.Get("interlock:long")).Left; left < int(a.Valid()/time.Second) {
		t.Errorf("an item has %d s, its holder trusts it for %v", left, a.Valid())
	}
	// A mark is written for the rest of the time, and an item that has none left does not stay for
	// ever by it.
	short := storetest.Entered(t, d, 3*time.Second)
	short.Asks(mutex("short"), true)
	storetest.Until(t, "it goes", func() bool {
		l, err := d.(driver.Inspector).Line(t.Context(), "short")
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range l.Claims {
			_ = d.(driver.Inspector).Break(t.Context(), "short", h.PublicID, h.Fence, false)
		}
		return len(l.Claims) == 0
	})
}
