//go:build linux || darwin

package redissonlock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redissonlock"
)

// gate is a connection on which a test may stand in the way of one request.
type gate struct {
	redisconn.Conn

	mu        sync.Mutex
	listen    func()                                             // before the next Listen
	subscribe func()                                             // before the next channel is listened to
	do        func(cmd redisconn.Command) (any, error, bool)     // in place of the next script, if it says so
	after     func(cmd redisconn.Command, answer any, err error) // when the next script was answered
}

var errLost = errors.New("the answer was lost")

func (g *gate) Listen(ctx context.Context, key string, sharded bool, heard func(channel, payload string)) (*redisconn.Listener, error) {
	g.mu.Lock()
	f := g.listen
	g.listen = nil
	g.mu.Unlock()
	if f != nil {
		f()
	}
	l, err := g.Conn.Listen(ctx, key, sharded, heard)
	if err != nil {
		return nil, err
	}
	return redisconn.NewListener(l.Node, l.Done, func(ctx context.Context, channel string) error {
		g.mu.Lock()
		f := g.subscribe
		g.subscribe = nil
		g.mu.Unlock()
		if f != nil {
			f()
		}
		return l.Subscribe(ctx, channel)
	}, l.Unsubscribe, l.Close), nil
}

func (g *gate) Do(ctx context.Context, cmd redisconn.Command) (any, error) {
	if !strings.HasPrefix(cmd.Words[0], "EVAL") {
		return g.Conn.Do(ctx, cmd)
	}
	g.mu.Lock()
	do, after := g.do, g.after
	g.do, g.after = nil, nil
	g.mu.Unlock()
	if do != nil {
		if v, err, instead := do(cmd); instead {
			return v, err
		}
	}
	v, err := g.Conn.Do(ctx, cmd)
	if after != nil {
		after(cmd, v, err)
	}
	return v, err
}

func (g *gate) set(f func(g *gate)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f(g)
}

// newGated starts a server with one who has no gate, and one in whose way the test may stand.
func newGated(t *testing.T) (server *servertest.Server, g *gate, free, gated actor) {
	t.Helper()
	server = servertest.Redis(t, redistest.Durable...)
	conn, err := redisconn.Open(t.Context(), redisconn.Config{Addrs: []string{server.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	g = &gate{Conn: conn}
	d, err := redissonlock.New(t.Context(), g, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(context.Background()); err != nil {
			t.Error(err)
		}
		conn.Close()
	})
	return server, g, newActor(t, byURL(t, server.Addr()), ages), newActor(t, d, ages)
}

// actor is a session that nobody renews, of long life.
type actor struct {
	t *testing.T
	s driver.Session
}

func newActor(t *testing.T, d driver.Driver, ttl time.Duration) actor {
	t.Helper()
	s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: ttl, Owner: driver.Owner{Name: "tester"}})
	if err != nil {
		t.Fatal(err)
	}
	return actor{t, s}
}

func claimOf(kind driver.Kind, name string) driver.Claim {
	c := driver.Claim{Name: name, ID: driver.NewID(), Kind: kind, Weight: driver.All, Limit: driver.All}
	if kind == driver.Read {
		c.Weight = 1
	}
	return c
}

// holds takes a claim that is free.
func (a actor) holds(c driver.Claim) driver.Grant {
	a.t.Helper()
	g, err := a.s.Acquire(a.t.Context(), c)
	if err != nil || !g.Held {
		a.t.Fatalf("Acquire of %q: %+v, %v: want it held", c.Name, g, err)
	}
	return g
}

// denied sees that somebody is in the way.
func (a actor) denied(c driver.Claim) {
	a.t.Helper()
	if g, err := a.s.Acquire(a.t.Context(), c); err != nil || g.Held {
		a.t.Fatalf("Acquire of %q: %+v, %v: want it not held", c.Name, g, err)
	}
}

// takes takes a name that is free.
func (a actor) takes(kind driver.Kind, name string) driver.Claim {
	a.t.Helper()
	c := claimOf(kind, name)
	a.holds(c)
	return c
}

// queues asks for a name that somebody holds, to wait for it.
func (a actor) queues(kind driver.Kind, name string) driver.Claim {
	a.t.Helper()
	c := claimOf(kind, name)
	c.Queue = true
	a.denied(c)
	return c
}

func (a actor) releases(c driver.Claim, held bool) {
	a.t.Helper()
	if got, err := a.s.Release(a.t.Context(), c); err != nil || got != held {
		a.t.Fatalf("Release of %q: held %v, %v: want %v", c.Name, got, err, held)
	}
}

// waits calls Wait as the core does, until the claim is held or an error is final.
func (a actor) waits(c driver.Claim) <-chan error {
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(a.t.Context(), ages/2)
		defer cancel()
		for {
			g, err := a.s.Wait(ctx, c)
			final := ctx.Err() != nil || errors.Is(err, driver.ErrRefused) || errors.Is(err, driver.ErrGone) || errors.Is(err, driver.ErrBroken)
			if err == nil && g.Held || final {
				done <- err
				return
			}
			if err != nil { // the core pauses, too
				select {
				case <-time.After(10 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		}
	}()
	return done
}
