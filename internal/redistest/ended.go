package redistest

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
)

// Opening makes a driver to the server at addr, with a client of its own.
type Opening = func(t drivertest.T, addr string) driver.Driver

// endings are the ways in which every connection ends while nobody uses it.
var endings = map[string]func(t *testing.T, s *servertest.Server, w *wire.Wire){
	"killed by the server": func(t *testing.T, s *servertest.Server, _ *wire.Wire) {
		for _, kind := range []string{"normal", "pubsub"} {
			s.MustDo(t, "CLIENT", "KILL", "TYPE", kind)
		}
	},
	"reset on the way": func(_ *testing.T, _ *servertest.Server, w *wire.Wire) { w.Cut() },
}

// limit is longer than anything takes that works.
const limit = 30 * time.Second

// ended is a driver over a wire, and a rival.
type ended struct {
	t       *testing.T
	s       *servertest.Server
	w       *wire.Wire
	d       driver.Driver
	session driver.Session
	rival   driver.Session
	listens atomic.Int64 // subscriptions that were asked for
}

func newEnded(t *testing.T, s *servertest.Server, w *wire.Wire, open Opening) *ended {
	t.Helper()
	e := &ended{t: t, s: s, w: w, d: open(t, w.Addr())}
	other := open(t, s.Addr())
	w.Filter(wire.Requests, func(frame []byte) bool {
		if bytes.Contains(bytes.ToUpper(frame[:min(len(frame), 24)]), []byte("SUBSCRIBE")) {
			e.listens.Add(1)
		}
		return true
	})
	e.session, e.rival = e.open(e.d), e.open(other)
	t.Cleanup(func() {
		_ = other.Close(context.Background())
		if err := e.d.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return e
}

func (e *ended) open(d driver.Driver) driver.Session {
	e.t.Helper()
	s, err := d.Open(e.t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
	if err != nil {
		e.t.Fatalf("Open: %v", err)
	}
	return s
}

func exclusive(name string, queue bool) driver.Claim {
	return driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Queue: queue}
}

// acquire asks for a claim, which must be held or not as wanted.
func (e *ended) acquire(s driver.Session, what string, c driver.Claim, held bool) driver.Grant {
	e.t.Helper()
	g, err := s.Acquire(e.t.Context(), c)
	if err != nil || g.Held != held {
		e.t.Errorf("Acquire of %s: held %v, %v; want %v and no error", what, g.Held, err, held)
	}
	return g
}

// release releases a claim that must have been held or not as wanted.
func (e *ended) release(s driver.Session, what string, c driver.Claim, held bool) {
	e.t.Helper()
	was, err := s.Release(e.t.Context(), c)
	if err != nil || was != held {
		e.t.Errorf("Release of %s: was held %v, %v; want %v and no error", what, was, err, held)
	}
}

func (e *ended) renew(what string) {
	e.t.Helper()
	if r, err := e.session.Renew(e.t.Context()); err != nil || len(r.Lost) > 0 {
		e.t.Errorf("Renew with %s: lost %d, %v; want none and no error", what, len(r.Lost), err)
	}
}

// line returns how many stand at the name.
func (e *ended) line(name string) int {
	e.t.Helper()
	l, err := e.d.(driver.Inspector).Line(e.t.Context(), name)
	if err != nil {
		e.t.Errorf("Line: %v; want no error", err)
	}
	return len(l.Claims)
}

// tryIdleTimeout has the server close what is idle, as its setting timeout says.
func tryIdleTimeout(t *testing.T, open Opening) {
	t.Helper()
	s := servertest.Redis(t)
	e := newEnded(t, s, wire.New(t, s.Addr()), open)
	end := func() {
		s.MustDo(t, "CONFIG", "SET", "timeout", "1")
		Until(t, limit, "the server keeps connections that are idle", func() bool {
			return strings.Count(s.MustDo(t, "CLIENT", "LIST", "TYPE", "normal"), "\n") == 1 // that asks this
		})
		s.MustDo(t, "CONFIG", "SET", "timeout", "0")
	}
	c := exclusive("free", true)
	end()
	e.acquire(e.session, "a free name", c, true)
	end()
	e.renew("a claim that is held")
	end()
	e.release(e.session, "a claim that is held", c, true)
}

// tryIdleEnds has every connection of a driver end while it is idle, before each kind of call. None
// notices.
func tryIdleEnds(t *testing.T, open Opening) {
	t.Helper()
	for what, end := range endings {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := servertest.Redis(t)
			e := newEnded(t, s, wire.New(t, s.Addr()), open)
			e.idle(func() {
				for range 20 { // a client may have several connections
					e.line("used")
				}
				end(t, s, e.w)
			})
		})
	}
}

func (e *ended) idle(end func()) {
	free, other := exclusive("free", true), exclusive("busy", false)
	end()
	e.acquire(e.session, "a free name", free, true)
	end()
	e.renew("a claim that is held")
	end()
	if n := e.line("free"); n != 1 {
		e.t.Errorf("%d claims stand at the name, want 1", n)
	}
	end()
	e.release(e.session, "a claim that is held", free, true)

	e.acquire(e.rival, "the rival", other, true)
	queued, try := exclusive("busy", true), exclusive("busy", false)
	end()
	e.acquire(e.session, "a name that is held, to wait", queued, false)
	end()
	e.acquire(e.session, "a name that is held, at once or not", try, false)
	end()
	e.renew("a claim that waits")
	granted := make(chan error, 1)
	listens := e.listens.Load()
	go func() {
		for {
			g, err := e.session.Wait(e.t.Context(), queued)
			if err != nil || g.Held {
				granted <- err
				return
			}
		}
	}()
	end()
	Until(e.t, limit, "nobody listens again", func() bool { return e.listens.Load() > listens })
	e.renew("a claim that waits, and hears again") // else its place is given up, and it says so
	e.release(e.rival, "the rival", other, true)
	if err := Receive(e.t, limit, "the claim that waits is granted", granted); err != nil {
		e.t.Errorf("Wait: %v; want no error", err)
	}
	if r, ok := e.session.(driver.Requeuer); ok {
		next := exclusive("busy", true)
		end()
		g, held, err := r.Requeue(e.t.Context(), queued, next)
		if err != nil || !held || !g.Held {
			e.t.Errorf("Requeue: %+v, was held %v, %v; want it held, now and before, and no error", g, held, err)
		}
		queued = next
	}
	third := exclusive("busy", true)
	e.acquire(e.session, "a name that is held, behind itself", third, false)
	end()
	e.release(e.session, "a claim that waits", third, false)
	end()
	e.release(e.session, "what was waited for", queued, true)

	end()
	second, late := e.open(e.d), exclusive("late", true)
	e.acquire(second, "a name in a session opened late", late, true)
	end()
	if lines, err := e.d.(driver.Inspector).Lines(e.t.Context(), ""); err != nil || len(lines) != 1 {
		e.t.Errorf("Lines: %d, %v; want 1 and no error", len(lines), err)
	} else {
		end()
		h := lines[0].Claims[0]
		if err := e.d.(driver.Inspector).Break(e.t.Context(), late.Name, h.PublicID, h.Fence, true); err != nil {
			e.t.Errorf("Break: %v; want no error", err)
		}
	}
	end()
	if err := second.Close(e.t.Context()); err != nil {
		e.t.Errorf("Close of a session: %v; want no error", err)
	}
	end() // before the driver's Close, at the test's end
}
