package memcachedlock_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/memcache"
)

const patience = 30 * time.Second // for what may take a moment

func opened(t *testing.T, url string) driver.Driver {
	t.Helper()
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
	s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: ttl, Owner: driver.Owner{Name: "it's us", PID: 7}})
	if err != nil {
		t.Fatal(err)
	}
	return actor{t, s, d}
}

func mutex(name string) driver.Claim {
	return driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Queue: true, Note: "a note"}
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
func (a actor) awaits(c driver.Claim) driver.Grant {
	a.Helper()
	ctx, cancel := context.WithTimeout(a.Context(), patience)
	defer cancel()
	for {
		g, err := a.Wait(ctx, c)
		if err != nil {
			a.Fatalf("%s: %v; want it held", c.Name, err)
		}
		if g.Held {
			return g
		}
	}
}

// leaves insists on whether a claim was held until its release.
func (a actor) leaves(c driver.Claim, held bool) {
	a.Helper()
	if was, err := a.Release(a.Context(), c); err != nil || was != held {
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

// raw talks to a server beside all drivers.
type raw struct {
	*testing.T
	*memcache.Client
}

func beside(t *testing.T, addr string) raw {
	t.Helper()
	c := memcache.New(memcache.Server{Addr: addr, Timeout: patience})
	t.Cleanup(c.Close)
	return raw{t, c}
}

// says makes a request and returns its answer.
func (r raw) says(request *memcache.Request) memcache.Reply {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	reply, err := r.Do(ctx, request)
	if err != nil {
		r.Fatal(err)
	}
	return reply
}

// command sends a command of the old protocol, which answers with one line.
func command(t *testing.T, addr, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write([]byte(text + "\r\n")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 512)
	n, err := c.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

// eventually insists that something comes to be.
func eventually(t *testing.T, what string, reached func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !reached(); {
		if time.Now().After(end) {
			t.Fatalf("not after %v: %s", patience, what)
		}
	}
}
