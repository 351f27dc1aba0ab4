package memcachedlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/memcache"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
)

// Whatever the server forgets is told by the next renewal and comes back to nobody, and the next
// token is larger all the same.
func TestM01_TheServerForgets(t *testing.T) {
	t.Parallel()
	for what, forget := range map[string]func(t *testing.T, s *servertest.Server){
		"flush_all": func(t *testing.T, s *servertest.Server) {
			if got := command(t, s.Addr(), "flush_all"); got != "OK\r\n" {
				t.Fatal(got)
			}
		},
		"eviction": func(t *testing.T, s *servertest.Server) {
			r := beside(t, s.Addr())
			size := len(r.says(memcache.Get("interlock:eviction")).Value)
			for i := range 40 { // more items of its size than two megabytes have
				for j := range 500 {
					r.says(memcache.Add(fmt.Sprintf("interlock:%03d-%04d", i, j), make([]byte, size), 0))
				}
			}
		},
		"restart": func(t *testing.T, s *servertest.Server) {
			restart(t, s)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := servertest.Memcached(t, "-m", "2")
			a := storetest.Entered(t, storetest.Opened(t, s.URL()), time.Minute)
			c := mutex(what)
			before := a.Asks(c, true).Fence
			forget(t, s)
			if what == "restart" {
				_, _ = a.Renew(t.Context()) // its connection has ended, or not yet
			}
			a.Loses(c)
			if _, err := a.Acquire(t.Context(), c); !errors.Is(err, driver.ErrGone) {
				t.Errorf("what is gone is answered %v", err)
			}
			a.Leaves(c, false)
			next := mutex(what)
			if after := a.Asks(next, true).Fence; after < before+driver.Stride {
				t.Errorf("token %d after %d", after, before)
			}
			a.Leaves(next, true)
		})
	}
}

// restart has a server forget everything, in another second than it was started in: it says that by
// the second.
func restart(t *testing.T, s *servertest.Server) {
	t.Helper()
	began := time.Now()
	storetest.Until(t, "a second passes", func() bool { return time.Since(began) > 1100*time.Millisecond })
	if err := errors.Join(s.Kill(), s.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// A server that is restarted begins its versions anew: that of an item which is gone is soon that
// of another one's. Neither a renewal nor a release touches that.
func TestVersionsOfAnotherRunOfTheServer(t *testing.T) {
	t.Parallel()
	s := servertest.Memcached(t)
	a := storetest.Entered(t, storetest.Opened(t, s.URL()), time.Minute)
	renewed, released := mutex("renewed"), mutex("released")
	a.Asks(renewed, true)
	a.Asks(released, true)
	restart(t, s)
	next := storetest.Entered(t, storetest.Opened(t, s.URL()), time.Minute)
	for _, name := range []string{"renewed", "released"} {
		next.Asks(mutex(name), true)
	}
	_, _ = a.Release(t.Context(), mutex("other")) // its connection has ended, or not yet
	a.Leaves(released, false)
	a.Loses(renewed)
	next.Loses()
}

// Items are written whenever within a second of the server's, and none goes before its holder's
// trust is over.
func TestM02_TheClockOfSeconds(t *testing.T) {
	t.Parallel()
	s := servertest.Memcached(t)
	d := storetest.Opened(t, s.URL())
	a := storetest.Entered(t, d, 3*time.Second)
	r := beside(t, s.Addr())
	samples := 200
	if testing.Short() {
		samples = 40
	}
	type sample struct {
		name string
		end  time.Time
	}
	all := make(chan sample, samples)
	go func() {
		defer close(all)
		tick := time.NewTicker(3 * time.Second / time.Duration(samples))
		defer tick.Stop()
		for i := range samples {
			<-tick.C
			c := mutex(fmt.Sprintf("sample-%d", i))
			at := time.Now()
			if g, err := a.Acquire(t.Context(), c); err != nil || !g.Held {
				t.Errorf("%s: %+v, %v", c.Name, g, err)
				return
			}
			all <- sample{c.Name, at.Add(a.Valid())}
		}
	}()
	for one := range all {
		storetest.Until(t, "trust is nearly over", func() bool { return time.Until(one.end) < 5*time.Millisecond })
		there := r.says(memcache.Get("interlock:"+one.name)).Status == memcache.Value
		if at := time.Now(); at.Before(one.end) && !there {
			t.Errorf("%s went %v before its holder's trust was over", one.name, one.end.Sub(at))
		}
	}
}

// Of an item that was taken by another one in the moment between a look and a deletion nothing is
// deleted.
func TestM03_ReleaseBesideTheNextHolder(t *testing.T) {
	t.Parallel()
	s := servertest.Memcached(t)
	a := storetest.Entered(t, storetest.Opened(t, s.URL()), time.Minute)
	r := beside(t, s.Addr())
	c := mutex("job")
	a.Asks(c, true)
	mine := r.says(memcache.Get("interlock:job"))
	if got := r.says(memcache.Delete("interlock:job", mine.Version)); got.Status != memcache.Done {
		t.Fatalf("%+v", got)
	}
	next := storetest.Entered(t, storetest.Opened(t, s.URL()), time.Minute)
	theirs := mutex("job")
	next.Asks(theirs, true)
	a.Leaves(c, false)
	next.Loses()
	next.Leaves(theirs, true)
}

// A name stays with its server, also while that is gone, and the names of the others go on.
func TestM04_OneOfTwoServersIsGone(t *testing.T) {
	t.Parallel()
	one, two := servertest.Memcached(t), servertest.Memcached(t)
	a := storetest.Entered(t, storetest.Opened(t, fmt.Sprintf("memcached://%s,%s?timeout=1s", one.Addr(), two.Addr())), 3*time.Second)
	b := storetest.Entered(t, storetest.Opened(t, fmt.Sprintf("memcached://%s,%s", two.Addr(), one.Addr())), time.Minute) // in another order
	on := map[bool]string{}                                                                                               // a name of each server
	for i := 0; len(on) < 2; i++ {
		name := fmt.Sprintf("name-%d", i)
		c := mutex(name)
		a.Asks(c, true)
		b.Asks(mutex(name), false)
		on[beside(t, one.Addr()).says(memcache.Get("interlock:"+name)).Status == memcache.Value] = name
		a.Leaves(c, true)
	}
	lost, kept := mutex(on[true]), mutex(on[false])
	a.Asks(lost, true)
	a.Asks(kept, true)
	if err := one.Kill(); err != nil {
		t.Fatal(err)
	}
	if g, err := b.Acquire(t.Context(), mutex(on[true])); err == nil {
		t.Errorf("a name whose server is gone: %+v", g)
	}
	again := mutex("again")
	again.Name = on[false]
	b.Asks(again, false)
	// Renewed late in its time, the session goes on without what nobody can renew.
	storetest.Until(t, "the claim of the server that is gone is given up", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		r, err := a.Renew(ctx)
		if err == nil && (len(r.Lost) != 1 || r.Lost[0].ID != lost.ID) {
			t.Fatalf("lost %q", r.Lost)
		}
		return err == nil
	})
	a.Asks(kept, true)
	a.Leaves(kept, true)
	if err := two.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Renew(t.Context()); err == nil {
		t.Error("a session is renewed by nobody")
	}
}

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

// No name reaches the protocol: each is another key, legal and no longer than keys may be, or is
// refused.
func TestM06_Names(t *testing.T) {
	t.Parallel()
	s := servertest.Memcached(t)
	a := storetest.Entered(t, storetest.Opened(t, s.URL()), time.Minute)
	keys := map[string]string{}
	for _, name := range []string{
		"a", "A", "a b", "a_b", "a\r\nflush_all\r\n", "a\x00", "ä", "a~b", "~", " ", strings.Repeat("x", 240), strings.Repeat("x", 241), strings.Repeat("x", 1024),
		strings.Repeat("x", 1023) + "y", strings.Repeat("ü", 512), "interlock:a",
	} {
		key := a.Driver.(driver.Keyer).Key(name)
		if err := memcache.CheckKey(key); err != nil {
			t.Errorf("%.20q: %v", name, err)
		}
		if other, taken := keys[key]; taken {
			t.Errorf("%.20q and %.20q have the key %q", name, other, key)
		}
		keys[key] = name
		c := mutex(name)
		a.Asks(c, true)
		if h := a.Line(name); h.PublicID != driver.PublicID(c.ID) {
			t.Errorf("%.20q: %+v", name, h)
		}
	}
	lines, err := a.Driver.(driver.Inspector).Lines(t.Context(), "")
	if err != nil || len(lines) != len(keys) {
		t.Errorf("%d lines of %d names, %v", len(lines), len(keys), err)
	}
	for _, name := range []string{"", "\xff", strings.Repeat("x", 5000)} {
		if _, err := a.Acquire(t.Context(), mutex(name)); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("%.20q: %v", name, err)
		}
	}
	add := storetest.Entered(t, storetest.Opened(t, s.URL()+"?layout=add&prefix=mine:"), time.Minute)
	for _, name := range []string{"a b", "a\r\n", strings.Repeat("x", 246)} {
		if _, err := add.Acquire(t.Context(), mutex(name)); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("%.20q as a key: %v", name, err)
		}
	}
	add.Asks(mutex("a"), true)
	if got := beside(t, s.Addr()).says(memcache.Get("mine:a")); got.Status != memcache.Value {
		t.Errorf("at mine:a stands %+v", got)
	}
}

// Versions begin anew with the server, and tokens do not: TestM01_TheServerForgets. Within its life
// they grow with every grant, and stay what they are through renewals and marks.
func TestM07_TokensAreThoseOfTheGrant(t *testing.T) {
	t.Parallel()
	s := servertest.Memcached(t)
	a := storetest.Entered(t, storetest.Opened(t, s.URL()), time.Minute)
	last := uint64(0)
	for range 5 {
		c := mutex("job")
		g := a.Asks(c, true)
		if g.Fence < last+driver.Stride || g.Fence > driver.MaxFence {
			t.Errorf("token %d after %d", g.Fence, last)
		}
		last = g.Fence
		for range 2 {
			a.Loses()
			if again := a.Asks(c, true); again.Fence != g.Fence || a.Line("job").Fence != g.Fence {
				t.Errorf("asked again, token %d is %d, and shown as %d", g.Fence, again.Fence, a.Line("job").Fence)
			}
		}
		a.Leaves(c, true)
	}
}

// An Acquire whose connection broke before its answer came, and that a server which was stopped
// carries out after its Release, leaves nothing behind.
func TestLateAcquireOfABrokenConnection(t *testing.T) {
	t.Parallel()
	s := servertest.Memcached(t)
	w := wire.New(t, s.Addr())
	d := storetest.Opened(t, "memcached://"+w.Addr()+"?timeout=1s")
	a := storetest.Entered(t, d, 3*time.Second)
	c := mutex("late")
	deliver := w.Hold(func(p []byte) bool { return strings.HasPrefix(string(p), "ms ") })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := a.Acquire(ctx, c); err == nil {
		t.Fatal("a request that is held is answered")
	}
	storetest.Until(t, "another connection carries the Release", func() bool {
		_, err := a.Release(t.Context(), c)
		return err == nil
	})
	deliver()
	b := storetest.Entered(t, storetest.Opened(t, s.URL()), time.Minute)
	storetest.Until(t, "it is free", func() bool {
		b.Helper()
		l, err := b.Driver.(driver.Inspector).Line(t.Context(), "late")
		return err == nil && len(l.Claims) == 0
	})
	b.Awaits(mutex("late"))
}
