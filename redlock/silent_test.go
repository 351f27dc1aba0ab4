package redlock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// occupied has a name held by one of the side, at every master that it reaches: what it lacks
// another one of the side might get, and wait for the silent masters as those that decide.
func occupied(t *testing.T, s side, name string) driver.Claim {
	t.Helper()
	c := mutex(name, true)
	within(t, "an acquire", func(ctx context.Context) error { _, err := acquire(ctx, s.one, c); return err })
	everywhere(t, s.there, name)
	return c
}

// behind has a claim of the other one meet the holder.
func behind(t *testing.T, s side, what string, c driver.Claim) time.Duration {
	t.Helper()
	return within(t, what, func(ctx context.Context) error {
		g, err := s.two.Acquire(ctx, c)
		if g.Held {
			t.Errorf("%s at a held name is held", what)
		}
		return err
	})
}

// A try at a held name is denied when a majority has denied it.
func TestATryDoesNotWaitForSilentMasters(t *testing.T) {
	besides(t, "a denied try", func(t *testing.T, s side, name string) func() time.Duration {
		t.Helper()
		occupied(t, s, name)
		return func() time.Duration { return behind(t, s, "a denied try", mutex(name, false)) }
	})
}

// A claim waits in line when it stands in that of a majority.
func TestAClaimThatQueuesDoesNotWaitForSilentMasters(t *testing.T) {
	besides(t, "a claim that queues", func(t *testing.T, s side, name string) func() time.Duration {
		t.Helper()
		occupied(t, s, name)
		queue := func() time.Duration {
			c := mutex(name, true)
			took := behind(t, s, "a claim that queues", c)
			within(t, "a release", func(ctx context.Context) error { _, err := s.two.Release(ctx, c); return err })
			return took
		}
		queue() // which has subscribed
		return queue
	})
}

// The first claim of a process that queues subscribes first, and waits no longer than for a
// majority.
func TestAFirstClaimDoesNotWaitForSilentMasters(t *testing.T) {
	anew(t, "a first claim that queues", false, func(s side, name string) {
		occupied(t, s, name)
	}, func(t *testing.T, s side, name string) time.Duration {
		t.Helper()
		return behind(t, s, "a first claim that queues", mutex(name, true))
	})
}

// Masters fall silent while one holds and one waits behind it. The waiter is let in when a majority
// was handed on.
func TestAWaiterDoesNotWaitForMastersThatFallSilent(t *testing.T) {
	held, waits := map[string]driver.Claim{}, map[string]driver.Claim{}
	anew(t, "a handoff", true, func(s side, name string) {
		held[name], waits[name] = occupied(t, s, name), mutex(name, true)
		behind(t, s, "a claim that queues", waits[name])
	}, func(t *testing.T, s side, name string) time.Duration {
		t.Helper()
		return within(t, "a handoff", func(ctx context.Context) error {
			if was, err := s.one.Release(ctx, held[name]); err != nil || !was {
				return fmt.Errorf("release: it was held: %v: %w", was, err)
			}
			_, err := acquire(ctx, s.two, waits[name])
			return err
		})
	})
}

// A turn is over when a majority has been handed on: whoever leaves and stands in line again, and
// whoever is let in, wait for nobody else.
func TestATurnDoesNotWaitForSilentMasters(t *testing.T) {
	besides(t, "a turn", func(t *testing.T, s side, name string) func() time.Duration {
		t.Helper()
		holder, next := s.one, s.two
		held, waits := occupied(t, s, name), mutex(name, true)
		behind(t, s, "a claim that queues", waits)
		var last uint64
		return func() time.Duration {
			again := mutex(name, true)
			took := within(t, "a turn", func(ctx context.Context) error {
				if _, was, err := holder.Session.(driver.Requeuer).Requeue(ctx, held, again); err != nil || !was {
					return fmt.Errorf("whoever leaves held: %v: %w", was, err)
				}
				g, err := acquire(ctx, next, waits)
				if g.Fence < last+driver.Stride {
					t.Errorf("token %d after %d", g.Fence, last)
				}
				last = g.Fence
				return err
			})
			holder, next, held, waits = next, holder, waits, again
			return took
		}
	})
}

// A claim has two of three masters and another waits with the third. One of the two falls silent,
// so that a release hears one yes and one no. Nobody is asked who will not answer: it was held as
// far as is known, and the waiter is let in.
func TestAReleaseDoesNotWaitForASilentMaster(t *testing.T) {
	set := startMasters(t, 3)
	d, wires := wired(t, set, endless)
	holds, waits := session(t, d, endlessTTL), session(t, open(t, urlOf(addrs(set))+endless), endlessTTL)
	c, next := mutex("split", false), mutex("split", true) // the former stands in no line, so that it does not get the third back
	within(t, "an acquire", func(ctx context.Context) error { _, err := acquire(ctx, holds, c); return err })
	everywhere(t, set, "split") // else it might take the third after the next line
	set[2].MustDo(t, "DEL", "split")
	if g, err := waits.Acquire(t.Context(), next); g.Held || err != nil {
		t.Fatalf("with one master of three: %+v, %v", g, err)
	}
	until(t, 30*time.Second, "given to the waiter", func() bool { return strings.HasPrefix(set[2].MustDo(t, "GET", "split"), "ilq1:"+next.ID) })
	heal := wires[0].Stall(wire.Replies)
	defer heal()
	within(t, "a release", func(ctx context.Context) error {
		if held, err := holds.Release(ctx, c); err != nil || !held {
			return fmt.Errorf("it was held: %v: %w", held, err)
		}
		return nil
	})
	within(t, "the waiter", func(ctx context.Context) error { _, err := acquire(ctx, waits, next); return err })
}

// Two of five masters are silent, and another program has one of the others: a try needs one of the
// silent ones, and waits until they have not answered in time. The next try does not.
func TestASecondTryDoesNotWaitForSilentMasters(t *testing.T) {
	set := startMasters(t, 5)
	d, wires := wired(t, set, "?node_timeout=2s")
	s := session(t, d, time.Minute)
	occupy(t, "split", set[2])
	for _, w := range wires[3:] {
		defer w.Stall(wire.Both)()
	}
	try := func() time.Duration {
		return within(t, "a denied try", func(ctx context.Context) error {
			g, err := s.Acquire(ctx, mutex("split", false))
			if g.Held {
				t.Error("held by two of five")
			}
			return err
		})
	}
	if first, second := try(), try(); second > first/2 {
		t.Errorf("a try that needed a silent master took %v, and the next one %v: want half at most, it is known to be silent", first, second)
	}
}

// A master confirms the subscription of a process when a claim of it already waits at the others.
// It joins the line there too.
func TestAWaiterJoinsTheLineOfAMasterThatConfirmsLater(t *testing.T) {
	set := startMasters(t, 3)
	holds := session(t, open(t, urlOf(addrs(set))), time.Minute)
	d, wires := wired(t, set, "?node_timeout=90s")
	waits := session(t, d, time.Minute)
	c, next := mutex("later", false), mutex("later", true)
	within(t, "an acquire", func(ctx context.Context) error { _, err := acquire(ctx, holds, c); return err })
	everywhere(t, set, "later") // else the waiter might take one of them
	heal := wires[2].Stall(wire.Both)
	defer heal()
	got := make(chan error, 1)
	go func() {
		_, err := acquire(t.Context(), waits, next)
		got <- err
	}()
	stands := func(s *servertest.Server) bool { return s.MustDo(t, "ZCARD", "il:{later}:qline:later") == "1" }
	until(t, 30*time.Second, "in line at two masters", func() bool { return stands(set[0]) && stands(set[1]) })
	heal()
	until(t, 30*time.Second, "in line at the master that confirms later", func() bool { return stands(set[2]) })
	if held, err := holds.Release(t.Context(), c); err != nil || !held {
		t.Errorf("release: %v, %v", held, err)
	}
	if err := <-got; err != nil {
		t.Errorf("the waiter: %v", err)
	}
}

// A claim joins the lines of four masters that have confirmed, of which two have fallen silent. The
// fifth confirms while it waits for their answers, and is the third that it needs.
func TestAClaimJoinsTheLineOfAMasterThatConfirmsMeanwhile(t *testing.T) {
	set := startMasters(t, 5)
	holds := session(t, open(t, urlOf(addrs(set))), time.Minute)
	d, wires := wired(t, set, "?node_timeout=90s")
	waits := session(t, d, time.Minute)
	for _, name := range []string{"first", "second"} {
		within(t, "an acquire", func(ctx context.Context) error { _, err := acquire(ctx, holds, mutex(name, false)); return err })
		everywhere(t, set, name) // else the waiter might take one of them
	}
	stands := func(name string, at ...*servertest.Server) func() bool {
		return func() bool {
			for _, s := range at {
				if s.MustDo(t, "ZCARD", "il:{"+name+"}:qline:"+name) != "1" {
					return false
				}
			}
			return true
		}
	}
	confirm := make(chan struct{})
	heal := sync.OnceFunc(func() { close(confirm) })
	defer heal()
	wires[1].Filter(wire.Replies, func(frame []byte) bool {
		if bytes.Contains(frame, []byte("subscribe")) {
			<-confirm
		}
		return true
	})
	until(t, 30*time.Second, "confirmed by four", func() bool {
		first := mutex("first", true)
		within(t, "a claim that queues", func(ctx context.Context) error { _, err := waits.Acquire(ctx, first); return err })
		confirmed := stands("first", set[0], set[2], set[3], set[4])()
		within(t, "a release", func(ctx context.Context) error { _, err := waits.Release(ctx, first); return err })
		return confirmed
	})
	for _, i := range []int{0, 3} {
		defer wires[i].Stall(wire.Both)()
	}
	queued := make(chan error, 1)
	go func() {
		_, err := waits.Acquire(t.Context(), mutex("second", true))
		queued <- err
	}()
	until(t, 30*time.Second, "in line at two", stands("second", set[2], set[4]))
	heal()
	if err := <-queued; err != nil {
		t.Errorf("a majority answers, and a claim does not get into its line: %v", err)
	}
}

// A waiter is let in and has heard so of one master only when it is released. Two others say that
// they never had it, and the last two answer late: with theirs it was held.
func TestAReleaseWaitsForMastersThatDecide(t *testing.T) {
	set := startMasters(t, 5)
	holds := session(t, open(t, urlOf(addrs(set))), time.Minute)
	d, wires := wired(t, set, "?node_timeout=90s")
	waits := session(t, d, time.Minute)
	occupy(t, "decide", set[3:]...)
	c, next := mutex("decide", false), mutex("decide", true)
	within(t, "an acquire", func(ctx context.Context) error { _, err := acquire(ctx, holds, c); return err })
	until(t, 30*time.Second, "in line everywhere", func() bool {
		if g, err := waits.Acquire(t.Context(), next); g.Held || err != nil {
			t.Fatalf("behind a holder: %+v, %v", g, err)
		}
		for _, s := range set {
			if s.MustDo(t, "ZCARD", "il:{decide}:qline:decide") != "1" {
				return false
			}
		}
		return true
	})
	var heals []func()
	for _, w := range wires[1:3] {
		heal := w.Stall(wire.Replies)
		defer heal()
		heals = append(heals, heal)
	}
	within(t, "a release", func(ctx context.Context) error { _, err := holds.Release(ctx, c); return err })
	until(t, 30*time.Second, "handed on", func() bool {
		for _, s := range set[:3] {
			if !strings.HasPrefix(s.MustDo(t, "GET", "decide"), "ilq1:"+next.ID) {
				return false
			}
		}
		return true
	})
	type result struct {
		held bool
		err  error
	}
	released := make(chan result, 1)
	go func() {
		held, err := waits.Release(t.Context(), next)
		released <- result{held, err}
	}()
	select {
	case r := <-released:
		t.Fatalf("a release of a waiter that a majority has let in says held %v, %v, before that majority has answered", r.held, r.err)
	case <-time.After(300 * time.Millisecond): // a release that is wrong has time to be
	}
	for _, heal := range heals {
		heal()
	}
	if r := <-released; !r.held || r.err != nil {
		t.Errorf("a release of a waiter that a majority has let in says held %v, %v", r.held, r.err)
	}
}

// Three of five masters cannot be reached, and two carry out a claim while their answers are under
// way. Who is told that nothing was sent forgets the claim, and the two masters keep it until its
// TTL is over.
func TestAClaimThatIsUnderWayIsNotCalledUnsent(t *testing.T) {
	for _, queue := range []bool{false, true} {
		t.Run(fmt.Sprintf("queue=%v", queue), func(t *testing.T) {
			set := startMasters(t, 5)
			d, wires := wired(t, set, "?node_timeout=90s")
			s := session(t, d, time.Minute)
			known := mutex("known", false)
			within(t, "an acquire", func(ctx context.Context) error { _, err := acquire(ctx, s, known); return err })
			everywhere(t, set, "known") // so nothing of it is under way any more
			var heals []func()
			for i, w := range wires {
				if i < 2 {
					heal := w.Stall(wire.Replies)
					defer heal()
					heals = append(heals, heal)
				} else {
					w.Refuse()
					w.Cut()
				}
			}
			c := mutex("under way", queue)
			_, err := s.Acquire(t.Context(), c)
			if err == nil || errors.Is(err, driver.ErrNotSent) {
				t.Fatalf("an acquire that two of five masters carry out, and the others cannot: %v; want an error that does not say that nothing was sent", err)
			}
			for _, one := range set[:2] {
				until(t, 30*time.Second, "carried out", func() bool {
					return strings.HasPrefix(one.MustDo(t, "GET", "under way"), "ilq1:"+c.ID)
				})
			}
			released := make(chan struct{})
			go func() { // as the core does: it has no majority, and goes on when it is answered
				defer close(released)
				_, _ = s.Release(t.Context(), c)
			}()
			for _, heal := range heals {
				heal()
			}
			<-released
			freeForGood(t, "under way", set[:2]...)
		})
	}
}

// The connections to all masters die and nobody knows, first those of the command that is alone,
// and then those of what follows one without an answer.
func TestSilentConnectionsCostNoLease(t *testing.T) {
	set := startMasters(t, 3)
	d, wires := wired(t, set, "?timeout=90s&keepalive=90s")
	s := session(t, d, 30*time.Second)
	within(t, "an acquire", func(ctx context.Context) error { _, err := acquire(ctx, s, mutex("m", false)); return err })
	redistest.TrySilentConnections(t, s, time.Second, wires...)
}
