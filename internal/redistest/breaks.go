package redistest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// TryBreakIsHeard tries that whoever holds hears of an operator's break by itself, of whatever kind
// the claim is, also where it never waited: nobody renews here. Each open makes a driver, as
// another process would.
func TryBreakIsHeard(t *testing.T, open func(t *testing.T) driver.Driver, kinds ...driver.Kind) {
	t.Helper()
	for _, kind := range kinds {
		for _, queue := range []bool{true, false} {
			for _, now := range []bool{false, true} {
				what := map[bool]string{true: "queued ", false: "tried "}[queue] + kind.String() + map[bool]string{true: " at once"}[now]
				t.Run(what, func(t *testing.T) {
					t.Parallel()
					tryBreakIsHeard(t, open, kind, queue, now)
				})
			}
		}
	}
}

func tryBreakIsHeard(t *testing.T, open func(t *testing.T) driver.Driver, kind driver.Kind, queue, now bool) {
	t.Helper()
	holds, operator := alerted(t, open(t)), open(t)
	waits := alerted(t, operator)
	mine := driver.Claim{Name: t.Name(), ID: driver.NewID(), Kind: kind, Weight: driver.All, Limit: driver.All, Queue: queue}
	next := exclusive(mine.Name, true)
	switch kind {
	case driver.Read:
		mine.Weight = 1
	case driver.Permit:
		mine.Weight, mine.Limit = 1, 1
		next.Kind, next.Weight, next.Limit = kind, 1, 1
	}
	g, err := holds.Acquire(t.Context(), mine)
	if err != nil || !g.Held {
		t.Fatalf("a free name: held %v, %v", g.Held, err)
	}
	if kind.Exclusive() || !queue { // it did not subscribe first, and looks when it has
		Receive(t, limit, "who holds a "+kind.String()+" listens", holds.Nudge())
	}
	if g, err := waits.Acquire(t.Context(), next); err != nil || g.Held {
		t.Fatalf("behind it: held %v, %v", g.Held, err)
	}
	if err := operator.(driver.Inspector).Break(t.Context(), mine.Name, driver.PublicID(mine.ID), g.Fence, now); err != nil {
		t.Fatalf("break: %v", err)
	}
	holds.told(t, mine)
	if g, err := waits.Acquire(t.Context(), next); !now && (err != nil || g.Held) {
		t.Fatalf("behind a claim that is marked: held %v, %v", g.Held, err)
	}
	if held, err := holds.Release(t.Context(), mine); err != nil || held {
		t.Errorf("the release of a claim that was broken: held %v, %v", held, err)
	}
	for g = (driver.Grant{}); err == nil && !g.Held; {
		g, err = waits.Wait(t.Context(), next)
	}
	if err != nil {
		t.Errorf("the next one is not let in: %v", err)
	}
}

// alert is a session that nobody renews unless it asks for that.
type alert struct {
	driver.Session
	driver.LossNotifier
	driver.Nudger
}

func alerted(t *testing.T, d driver.Driver) alert {
	t.Helper()
	s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.WithoutCancel(t.Context())) })
	return alert{s, s.(driver.LossNotifier), s.(driver.Nudger)}
}

// told insists that the session says by itself that c is lost, or asks for the renewal that says
// so.
func (a alert) told(t *testing.T, c driver.Claim) {
	t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for known := false; !known; {
		select {
		case l := <-a.Lost():
			known = l.ID == c.ID
		case <-a.Nudge():
			Until(t, limit, "the session is not renewed", func() bool {
				r, err := a.Renew(t.Context())
				known = slices.ContainsFunc(r.Lost, func(l driver.Loss) bool { return l.ID == c.ID }) // where there are several masters, not yet with the first one's word
				return err == nil
			})
		case <-timer.C:
			t.Fatalf("a %s was broken and nobody told who holds it", c.Kind)
		}
	}
}
