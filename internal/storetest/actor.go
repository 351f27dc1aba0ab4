package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Actor is a session as a user has it, whose steps must come out as wanted.
type Actor struct {
	*testing.T
	driver.Session
	Driver driver.Driver
}

// Opened is a driver by its URL, which is closed at the end of the test.
func Opened(t *testing.T, url string) driver.Driver {
	t.Helper()
	d := opens(t, url)
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	return d
}

// Entered opens a session of a driver.
func Entered(t *testing.T, d driver.Driver, ttl time.Duration) Actor {
	t.Helper()
	owner := driver.Owner{Name: "it's us", User: "app", Host: "host-1", PID: 7}
	s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: ttl, Owner: owner})
	if err != nil {
		t.Fatal(err)
	}
	return Actor{t, s, d}
}

// Asks insists on how a claim stands.
func (a Actor) Asks(c driver.Claim, held bool) driver.Grant {
	a.Helper()
	g, err := a.Acquire(a.Context(), c)
	if err != nil || g.Held != held {
		a.Fatalf("%s: held %v, %v; want %v", c.Name, g.Held, err, held)
	}
	return g
}

// Awaits waits until a claim is held.
func (a Actor) Awaits(c driver.Claim) driver.Grant {
	a.Helper()
	for ctx := within(a.T); ; {
		g, err := a.Wait(ctx, c)
		if err != nil {
			a.Fatalf("%s: %v; want it held", c.Name, err)
		}
		if g.Held {
			return g
		}
	}
}

// Leaves insists on whether a claim was held until its release.
func (a Actor) Leaves(c driver.Claim, held bool) {
	a.Helper()
	if was, err := a.Release(a.Context(), c); err != nil || was != held {
		a.Fatalf("release of %s: was held %v, %v; want %v", c.Name, was, err, held)
	}
}

// Loses insists on what a renewal says is lost.
func (a Actor) Loses(claims ...driver.Claim) {
	a.Helper()
	r, err := a.Renew(a.Context())
	if err != nil || len(r.Lost) != len(claims) || len(claims) > 0 && r.Lost[0].ID != claims[0].ID {
		a.Fatalf("renewed: lost %q, %v; want %d", r.Lost, err, len(claims))
	}
}

// Line insists on the holder of a name.
func (a Actor) Line(name string) driver.Holder {
	a.Helper()
	l, err := a.Driver.(driver.Inspector).Line(a.Context(), name)
	if err != nil || len(l.Claims) != 1 {
		a.Fatalf("line of %s: %+v, %v; want one holder", name, l, err)
	}
	return l.Claims[0]
}
