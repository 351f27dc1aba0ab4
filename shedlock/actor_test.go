package shedlock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

const soon = 30 * time.Second // for what may take a moment

// opened is the store, by its URL with more parameters. A server that is slow is none that is away.
func opened(t *testing.T, s *database, parameters ...string) driver.Driver {
	t.Helper()
	return openedAt(t, s, s.Addr(), append(parameters, "timeout="+soon.String())...)
}

// openedAt is the store over a wire.
func openedAt(t *testing.T, s *database, addr string, parameters ...string) driver.Driver {
	t.Helper()
	url := s.url(addr)
	for _, p := range parameters {
		if sep := "&"; strings.Contains(url, "?") {
			url += sep + p
		} else {
			url += "?" + p
		}
	}
	d, err := driver.OpenURL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	return d
}

// actor is a session of ours.
type actor struct {
	*testing.T
	driver.Session
	d driver.Driver
}

func entered(t *testing.T, d driver.Driver, ttl time.Duration) actor {
	t.Helper()
	s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: ttl, Owner: driver.Owner{Name: "it's us", User: "app", Host: "host-1", PID: 7}})
	if err != nil {
		t.Fatal(err)
	}
	return actor{t, s, d}
}

func mutex(name string) driver.Claim {
	return driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All}
}

// asks insists on how a claim stands.
func (a actor) asks(c driver.Claim, held bool) driver.Grant {
	a.Helper()
	g, err := a.Acquire(a.Context(), c)
	if err != nil || g.Held != held {
		a.Fatalf("%s: held %v, %v; want %v", c.Name, g.Held, err, held)
	}
	return g
}

// awaits waits until a claim is held.
func (a actor) awaits(c driver.Claim) {
	a.Helper()
	ctx, cancel := context.WithTimeout(a.Context(), soon)
	defer cancel()
	for {
		g, err := a.Wait(ctx, c)
		if err != nil {
			a.Fatalf("%s: %v; want it held", c.Name, err)
		}
		if g.Held {
			return
		}
	}
}

// leaves insists on whether a claim was held until its release.
func (a actor) leaves(c driver.Claim, held bool) {
	a.Helper()
	was, err := a.Release(a.Context(), c)
	if err != nil || was != held {
		a.Fatalf("release of %s: was held %v, %v; want %v", c.Name, was, err, held)
	}
}

// loses insists on what a renewal says is lost.
func (a actor) loses(claims ...driver.Claim) {
	a.Helper()
	r, err := a.Renew(a.Context())
	if err != nil || len(r.Lost) != len(claims) || len(claims) > 0 && r.Lost[0].ID != claims[0].ID {
		a.Fatalf("renewed: lost %q, %v; want %d", r.Lost, err, len(claims))
	}
}

// line insists on the holder of a name.
func (a actor) line(name string) driver.Holder {
	a.Helper()
	l, err := a.d.(driver.Inspector).Line(a.Context(), name)
	if err != nil || len(l.Claims) != 1 {
		a.Fatalf("line of %s: %+v, %v; want one holder", name, l, err)
	}
	return l.Claims[0]
}

// until insists that something comes to be.
func until(t *testing.T, what string, reached func() bool) {
	t.Helper()
	for end := time.Now().Add(soon); !reached(); {
		if time.Now().After(end) {
			t.Fatalf("not after %v: %s", soon, what)
		}
	}
}
