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
