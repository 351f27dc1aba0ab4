package redlock_test

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/redlock"
)

// asksFor matches questions for a claim at a name: runs of the long script.
func asksFor(name string) func(request []byte) bool {
	key := []byte("il:{" + name + "}:qline:" + name + "\r\n")
	return func(request []byte) bool { return bytes.Contains(request, key) }
}

// countAsks counts them at a master.
func countAsks(w *wire.Wire, name string) *atomic.Int32 {
	n, is := new(atomic.Int32), asksFor(name)
	w.Filter(wire.Requests, func(request []byte) bool {
		if is(request) {
			n.Add(1)
		}
		return true
	})
	return n
}

// waits has a claim that stands in line wait in the background until it is held, and ends that with
// the test.
func waits(t *testing.T, s driver.Session, c driver.Claim) (held <-chan error) {
	t.Helper()
	told := make(chan error, 1)
	go func() {
		var g driver.Grant
		var err error
		for err == nil && !g.Held {
			g, err = s.Wait(t.Context(), c)
		}
		told <- err
	}()
	return told
}

// A claim joins the line of a master, and what happens there is heard before the answer to that. It
// asks again, although the answer says that another one holds the master for minutes.
func TestAnAnswerDoesNotUndoWhatIsNewer(t *testing.T) {
	t.Parallel()
	for what, happens := range map[string]func(t *testing.T, end func(), s driver.Session, joins, other driver.Claim){
		"the subscription ends": func(t *testing.T, end func(), s driver.Session, _, other driver.Claim) {
			t.Helper()
			end()
			until(t, 30*time.Second, "asked by another claim with a subscription that stands", func() bool { return redlock.Pending(s, other.ID, 0) > 0 })
		},
		"a gap is left": func(_ *testing.T, _ func(), s driver.Session, joins, _ driver.Claim) { redlock.Gap(s, joins.ID, 0, 1) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			set := startMasters(t, 3)
			d, wires := wired(t, set, endless)
			s, rival := session(t, d, endlessTTL), session(t, open(t, urlOf(addrs(set))+"?max_ttl=5m"), endlessTTL)
			joins, other := mutex("joins", true), mutex("other", true)
			for _, name := range []string{joins.Name, other.Name} {
				if _, err := acquire(t.Context(), rival, mutex(name, true)); err != nil {
					t.Fatal(err)
				}
				everywhere(t, set, name)
			}
			if g, err := s.Acquire(t.Context(), other); g.Held || err != nil {
				t.Fatalf("behind a holder: held %v, %v", g.Held, err)
			}
			until(t, 30*time.Second, "heard everywhere", func() bool { return d.Hears() == 3 && redlock.Pending(s, other.ID, 0) == 0 })
			waits(t, s, other)
			asked := countAsks(wires[0], joins.Name)
			var met atomic.Bool
			asks := asksFor(joins.Name)
			deliver := wires[0].Hold(func(request []byte) bool {
				is := asks(request)
				met.Store(met.Load() || is)
				return is
			})
			if g, err := s.Acquire(t.Context(), joins); g.Held || err != nil {
				t.Fatalf("behind a holder: held %v, %v", g.Held, err)
			}
			until(t, 30*time.Second, "asked at the first master", met.Load) // which the others do not wait for
			happens(t, func() { set[0].MustDo(t, "CLIENT", "KILL", "TYPE", "pubsub") }, s, joins, other)
			if !deliver() {
				t.Fatal("the first master was not asked")
			}
			until(t, 30*time.Second, "answered", func() bool { return redlock.Pending(s, joins.ID, 0) == 0 })
			waits(t, s, joins)
			until(t, 10*time.Second, "asked again", func() bool { return asked.Load() > 1 })
		})
	}
}

// A claim steps back from a master, and is told that nobody older waits there any more, so that it
// has it still. Meanwhile the time has come to ask other masters, which it does then.
func TestWhoNeedNotStepBackAsksTheOthers(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	d, wires := wired(t, set, endless)
	s := session(t, d, endlessTTL)
	first := open(t, urlOf(addrs(set))+"?max_ttl=5m")
	first.Skew(-time.Hour)
	older := session(t, first, endlessTTL)
	occupy(t, "back", set[1:]...) // it is asked for every 50 ms
	occupy(t, "beside", set...)   // and so is this
	c := mutex("back", true)
	if g, err := s.Acquire(t.Context(), c); g.Held || err != nil {
		t.Fatalf("with one master of three: held %v, %v", g.Held, err)
	}
	until(t, 30*time.Second, "given to the claim", func() bool { return redlock.Has(s, c.ID) == 1 })
	until(t, 30*time.Second, "heard everywhere", func() bool { return d.Hears() == 3 })
	held := waits(t, s, c)

	var met atomic.Bool
	asks := asksFor("back")
	deliver := wires[0].Hold(func(request []byte) bool {
		is := asks(request)
		met.Store(met.Load() || is)
		return is
	})
	defer deliver()
	old := mutex("back", true)
	until(t, 30*time.Second, "asked to step back", func() bool { // when it is in all lines, not only in those of a majority
		if _, err := older.Acquire(t.Context(), old); err != nil {
			t.Error(err)
		}
		return met.Load() || t.Failed()
	})
	if _, err := older.Release(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	beside, other := countAsks(wires[1], "beside"), mutex("beside", true)
	if g, err := s.Acquire(t.Context(), other); g.Held || err != nil {
		t.Fatalf("with another program's lock in the way: held %v, %v", g.Held, err)
	}
	waits(t, s, other)
	until(t, 30*time.Second, "asked by a claim beside it, again and again", func() bool { return beside.Load() > 5 })
	set[1].MustDo(t, "DEL", "back")
	redlock.Gap(s, c.ID, 1, 0) // or it may have been told, while the older one stood before it, that it is not the one to ask
	until(t, 30*time.Second, "awake, and unsettled", func() bool { return redlock.Awake(s, c.ID) })
	deliver()
	within(t, "a claim that has two masters", func(ctx context.Context) error {
		select {
		case err := <-held:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// A claim waits that has one master of three, which restarts and forgets that. It is asked for the
// master again, as soon as that is known.
func TestWhoWaitsAsksAMasterThatForgotAgain(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	s := session(t, open(t, urlOf(addrs(set))+"?max_ttl=5m"), endlessTTL)
	occupy(t, "forgot", set[1:]...)
	c := mutex("forgot", true)
	if g, err := s.Acquire(t.Context(), c); g.Held || err != nil {
		t.Fatalf("with one master of three: held %v, %v", g.Held, err)
	}
	until(t, 30*time.Second, "given to the claim", func() bool { return redlock.Has(s, c.ID) == 1 })
	held := waits(t, s, c)
	if err := set[0].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, 30*time.Second, "listened to after it has restarted", func() bool {
		return strings.Contains(set[0].MustDo(t, "PUBSUB", "CHANNELS"), "il:push:")
	})
	met(t, set[0], func() { _ = tried(t, s) })
	until(t, 30*time.Second, "given its vote again", func() bool {
		set[0].MustDo(t, "HSET", "il:{redlock}:member", "until", "0")
		return votes(t, set[0])
	})
	set[1].MustDo(t, "DEL", "forgot")
	within(t, "a claim that has two masters", func(ctx context.Context) error {
		select {
		case err := <-held:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}
