package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redlock"
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

// meddling is a connection on which something happens when a reply tells of a value, before
// whatever is sent next.
type meddling struct {
	redisconn.Conn
	value  string
	meddle func()
}

func (c meddling) Do(ctx context.Context, cmd redisconn.Command) (any, error) {
	v, err := c.Conn.Do(ctx, cmd)
	if strings.Contains(fmt.Sprint(v), c.value) {
		c.meddle()
	}
	return v, err
}

// An operator breaks another program's lock, and that program passes it on while he is looking: the
// new holder keeps it everywhere.
func TestBreakOfAForeignLockThatWasPassedOn(t *testing.T) {
	t.Parallel()
	const first, next = "the-first-one's", "the-next-one's"
	set := startMasters(t, 3)
	var conns []redisconn.Conn
	met := make(chan *servertest.Server, 100)
	for _, s := range set {
		s.MustDo(t, "SET", "m", first)
		conns = append(conns, meddling{redistest.Rueidis(t, s.Addr()), first, func() {
			s.MustDo(t, "SET", "m", next)
			met <- s
		}})
	}
	d, err := redlock.New(t.Context(), conns, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close(context.Background()) }()
	if err := d.Break(t.Context(), "m", driver.PublicID(first), 0, true); !errors.Is(err, driver.ErrRefused) || len(met) < 2 {
		t.Errorf("break: %v when it was passed on at %d masters, want ErrRefused and two at least", err, len(met))
	}
	for range len(met) { // at another one the break may have come first
		if got := (<-met).MustDo(t, "GET", "m"); got != next {
			t.Errorf("the break of a lock that was passed on left %q, want %q", got, next)
		}
	}
}
