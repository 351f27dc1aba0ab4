package redlock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
)

func TestBreakIsHeard(t *testing.T) {
	t.Parallel()
	url := urlOf(addrs(startMasters(t, 3)))
	redistest.TryBreakIsHeard(t, func(t *testing.T) driver.Driver { return open(t, url) }, driver.Mutex, driver.Write)
}

// A process that holds something is cut off from its masters. It sees the end of its subscriptions,
// asks at once, and goes on trying to subscribe; when it can it asks again, and so hears of what
// nobody could tell it.
func TestHolderAsksWhenItsSubscriptionEnds(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	d, wires := wired(t, set, "?max_ttl=10m")
	s := session(t, d, 10*time.Minute)
	asks := func(when string) {
		t.Helper()
		redistest.Receive(t, 30*time.Second, "a renewal is asked for "+when, s.(driver.Nudger).Nudge())
	}
	hears := func(n int) func() bool { return func() bool { return d.Hears() == n } }
	c := mutex("m", false)
	g, err := acquire(t.Context(), s, c)
	if err != nil {
		t.Fatal(err)
	}
	everywhere(t, set, "m")
	asks("when it has subscribed")
	until(t, 30*time.Second, "subscribed everywhere", hears(3))
	for _, w := range wires {
		w.Refuse()
		w.Cut()
	}
	until(t, 30*time.Second, "deaf", hears(0))
	asks("when its subscriptions end")
	operator := open(t, urlOf(addrs(set))+"?max_ttl=10m")
	if err := operator.Break(t.Context(), "m", driver.PublicID(c.ID), g.Fence, false); err != nil {
		t.Fatal(err)
	}
	for _, w := range wires {
		if err := w.Accept(); err != nil {
			t.Fatal(err)
		}
	}
	until(t, 30*time.Second, "subscribed again", hears(3))
	asks("when it hears its masters again")
	until(t, 30*time.Second, "said to be broken", func() bool {
		r, err := s.Renew(t.Context())
		return err == nil && slices.Contains(r.Lost, driver.Loss{ID: c.ID, Err: driver.ErrBroken})
	})
}
