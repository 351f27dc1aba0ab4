package rowline

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/storetest"
)

var mutex, asks, leaves = storetest.Mutex, storetest.Asks, storetest.Leaves

func awaits(t *testing.T, s driver.Session, c driver.Claim) {
	t.Helper()
	if g := storetest.Awaits(t, s, c); g.Fence == 0 {
		t.Fatal("Wait: no token")
	}
}

func renews(t *testing.T, s *Session, lost ...string) {
	t.Helper()
	r, err := s.Renew(t.Context())
	var named []string
	for _, l := range r.Lost {
		named = append(named, l.ID)
	}
	if err != nil || strings.Join(named, " ") != strings.Join(lost, " ") {
		t.Fatalf("Renew: lost %v, %v; want %v", r.Lost, err, lost)
	}
}

func closes(t *testing.T, all ...*Session) {
	t.Helper()
	for _, s := range all {
		if _, err := s.d.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A free lock costs a request, as its release does, and who waits is let in by a message, and asks
// only once.
func TestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newServer()
		a, b := f.open(t, true), f.open(t, true)
		mine, next := mutex("line"), mutex("line")
		asks(t, a, mine, true)
		asks(t, b, next, false)
		go func() {
			time.Sleep(time.Second)
			leaves(t, a, mine, true)
		}()
		awaits(t, b, next)
		leaves(t, b, next, true)
		if f.asked["step"] != 4 || f.asked["look"] != 0 {
			t.Errorf("%v requests, want one each and no look", f.asked)
		}
		f.nobody(t, "line")
		closes(t, a, b)
	})
}

// A message that comes before the answer of the request that put the claim in line counts, and the
// answer takes nothing back.
func TestMessageBeforeAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newServer()
		a, b := f.open(t, true), f.open(t, true)
		mine, next := mutex("line"), mutex("line")
		asks(t, a, mine, true)
		f.set(func() { f.back = 2 * time.Second })
		go func() {
			time.Sleep(time.Second)
			leaves(t, a, mine, true)
		}()
		if g, err := b.Acquire(t.Context(), next); err != nil || !g.Held || g.Fence == 0 {
			t.Errorf("Acquire: %+v, %v; want what was heard meanwhile", g, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if g, err := b.Wait(ctx, next); err != nil || !g.Held {
			t.Errorf("Wait: %+v, %v; want what was heard before the answer", g, err)
		}
		closes(t, a, b)
		f.nobody(t, "line")
	})
}

// What a request without an answer puts into the line after the release is released again, when no
// more can come.
func TestRequestAfterRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newServer()
		s := f.open(t, true)
		late := mutex("line")
		f.set(func() { f.there = 2 * time.Second })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Acquire(ctx, late); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Acquire: %v, want that it ended", err)
		}
		// The release waits for the request.
		f.set(func() { f.there = 0 })
		leaves(t, s, late, true)
		if n := f.count("step"); n != 2 {
			t.Errorf("%d requests, want 2", n)
		}

		// One of which nobody hears any more arrives after the release.
		late = mutex("line")
		f.set(func() { f.there, f.cut = 2*time.Second, true })
		if _, err := s.Acquire(t.Context(), late); err == nil {
			t.Error("an Acquire without an answer got one")
		}
		f.set(func() { f.there, f.cut = 0, false })
		leaves(t, s, late, false)
		time.Sleep(3 * time.Second)
		f.set(func() {
			if len(f.lines["line"].Claims) != 1 {
				t.Error("the late request did nothing: this test shows nothing")
			}
		})
		time.Sleep(2 * time.Second)
		f.nobody(t, "line")
		closes(t, s)
	})
}

// A request that comes too late does nothing. One that is refused so since the database's clock was
// set is repeated with that clock.
func TestVoid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newServer()
		s := f.open(t, true)
		f.set(func() { f.there = 3500 * time.Millisecond })
		c := mutex("line")
		if _, err := s.Acquire(t.Context(), c); !errors.Is(err, driver.ErrNotSent) {
			t.Errorf("a late request: %v, want that nothing was done", err)
		}
		f.set(func() { f.there, f.skew, f.until[s.id] = 0, time.Hour, f.until[s.id].Add(time.Hour) })
		if _, err := s.Acquire(t.Context(), c); !errors.Is(err, driver.ErrNotSent) {
			t.Errorf("a clock that was set: %v, want that nothing was done", err)
		}
		asks(t, s, c, true)
		closes(t, s)
		f.nobody(t, "line")
	})
}

// A release that was sent twice and finds nothing does not say whether the claim was held.
func TestReleaseTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newServer()
		s := f.open(t, true)
		c := mutex("line")
		asks(t, s, c, true)
		f.set(func() {
			f.twice = true
			f.lines["line"].Leave(c.ID) // by the first attempt
		})
		if was, err := s.Release(t.Context(), c); err == nil || errors.Is(err, driver.ErrNotSent) {
			t.Errorf("Release: was held %v, %v; want that nobody knows", was, err)
		}
		leaves(t, s, c, false)
		leaves(t, s, c, false)
		closes(t, s)
	})
}

// A renewal finds what no message said: a grant, and a loss, which it repeats until the claim is
// released.
func TestRenewReconciles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newServer()
		a, b := f.open(t, true), f.open(t, true)
		mine, next := mutex("line"), mutex("line")
		asks(t, a, mine, true)
		asks(t, b, next, false)
		f.set(func() { f.mute = true })
		leaves(t, a, mine, true)
		renews(t, b)
		before := f.count("look")
		awaits(t, b, next)
		if f.count("look") != before {
			t.Error("Wait asked for what the renewal had said")
		}
		f.set(func() { f.lines["line"].Leave(next.ID) })
		renews(t, b, next.ID)
		renews(t, b, next.ID)
		if _, err := b.Acquire(t.Context(), next); !errors.Is(err, driver.ErrGone) {
			t.Errorf("Acquire of what is gone: %v", err)
		}
		leaves(t, b, next, false)
		renews(t, b)
		closes(t, a, b)
	})
}

// A release without an answer is repeated by the next renewal, also where nobody asks for it any
// more.
func TestReleaseIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newServer()
		s := f.open(t, true)
		c := mutex("line")
		asks(t, s, c, true)
		f.set(func() { f.there = time.Hour })
		if _, err := s.Release(t.Context(), c); err == nil {
			t.Error("a Release without an answer got one")
		}
		f.set(func() { f.there = 0 })
		f.set(func() { f.until[s.id] = f.now().Add(ttl) })
		renews(t, s)
		synctest.Wait()
		f.nobody(t, "line")
		closes(t, s)
		time.Sleep(2 * time.Hour)
	})
}

// A claim that is requeued stands behind who waits, in one request. Without an answer both are to
// be released.
func TestRequeue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newServer()
		a, b := f.open(t, true), f.open(t, true)
		mine, waits, again := mutex("line"), mutex("line"), mutex("line")
		asks(t, a, mine, true)
		asks(t, b, waits, false)
		before := f.count("step")
		if g, was, err := a.Requeue(t.Context(), mine, again); err != nil || g.Held || !was {
			t.Fatalf("Requeue: held %v, was held %v, %v", g.Held, was, err)
		}
		if n := f.count("step") - before; n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
		awaits(t, b, waits)
		leaves(t, b, waits, true)
		awaits(t, a, again)
		f.set(func() { f.fails = errors.New("the connection has ended") })
		third := mutex("line")
		if _, _, err := a.Requeue(t.Context(), again, third); err == nil {
			t.Error("a Requeue without an answer got one")
		}
		f.set(func() { f.fails = nil })
		leaves(t, a, third, true)
		leaves(t, a, again, false)
		closes(t, a, b)
		f.nobody(t, "line")
	})
}

// Whoever closes leaves every line, after what is under way.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newServer()
		a, b := f.open(t, true), f.open(t, true)
		mine, next := mutex("line"), mutex("line")
		asks(t, a, mine, true)
		asks(t, b, next, false)
		f.set(func() { f.there = time.Second })
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, _ = a.Acquire(ctx, mutex("other"))
		f.set(func() { f.there = 0 })
		closes(t, a)
		awaits(t, b, next)
		if _, err := a.Acquire(t.Context(), mutex("line")); !errors.Is(err, driver.ErrSessionLost) {
			t.Errorf("Acquire after Close: %v", err)
		}
		leaves(t, a, mutex("line"), false)
		if _, err := a.d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: ttl}); !errors.Is(err, driver.ErrNotSent) {
			t.Errorf("Open after Close: %v", err)
		}
		closes(t, b)
		f.nobody(t, "line")
		f.nobody(t, "other")
	})
}

// What cannot be kept is refused before anything is asked.
func TestBadClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newServer()
		s := f.open(t, true)
		for what, change := range map[string]func(*driver.Claim){
			"want one as driver.NewID makes them": func(c *driver.Claim) { c.ID = strings.Repeat("'", 22) },
			"name of 11 bytes: want 1 to 10":      func(c *driver.Claim) { c.Name = "12345678901" },
			"name of 0 bytes":                     func(c *driver.Claim) { c.Name = "" },
			"want 1 ≤ weight ≤ limit":             func(c *driver.Claim) { c.Weight = 0 },
		} {
			c := mutex("line")
			change(&c)
			if _, err := s.Acquire(t.Context(), c); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), what) {
				t.Errorf("%v, want %q", err, what)
			}
		}
		for _, spec := range []driver.Spec{{ID: "x", TTL: ttl}, {ID: driver.NewID(), TTL: time.Millisecond}} {
			if _, err := s.d.Open(t.Context(), spec); !errors.Is(err, driver.ErrRefused) {
				t.Errorf("Open: %v, want that it is refused", err)
			}
		}
		if f.asked["step"] != 0 || f.asked["open"] != 1 {
			t.Errorf("%v was asked", f.asked)
		}
		permit := driver.Claim{Name: "line", ID: driver.NewID(), Kind: driver.Permit, Weight: 1, Limit: 3, Queue: true}
		asks(t, s, mutex("line"), true)
		if _, err := s.Acquire(t.Context(), permit); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("a permit beside a mutex: %v", err)
		}
		closes(t, s)
	})
}

// A session that is being opened while its driver is closed is not one that Close may end: it ends
// by itself.
func TestOpenWhileClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newServer()
		a := f.open(t, true)
		f.set(func() { f.back = 2 * time.Second })
		opened := make(chan error, 1)
		go func() {
			_, err := a.d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: ttl})
			opened <- err
		}()
		time.Sleep(time.Second)
		closes(t, a)
		if err := <-opened; !errors.Is(err, driver.ErrNotSent) {
			t.Errorf("Open: %v, want %v", err, driver.ErrNotSent)
		}
		f.set(func() {
			if len(f.until) > 0 || f.asked["finish"] != 2 {
				t.Errorf("%d sessions are left, and %v was asked; want none, each finished once", len(f.until), f.asked)
			}
		})
	})
}
