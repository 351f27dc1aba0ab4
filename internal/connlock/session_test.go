package connlock

import (
	"context"
	"errors"
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

// An Acquire is answered when the server shows its place, however long its statement takes to get there.
func TestPlaceInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newServer()
		a, b := f.session(t, f), f.session(t, f)
		mine, next := mutex("line"), mutex("line")
		asks(t, a, mine, true)
		f.slow = time.Second
		start := time.Now()
		asks(t, b, next, false)
		if took := time.Since(start); took < time.Second {
			t.Errorf("a claim was in line after %v, before its statement was", took)
		}
		f.slow = time.Hour
		if _, err := b.Acquire(t.Context(), mutex("line")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a place that is never seen: %v", err)
		}
		leaves(t, a, mine, true)
		awaits(t, b, next)
		leaves(t, b, next, true)
		if err := errors.Join(a.Close(t.Context()), b.Close(t.Context())); err != nil {
			t.Error(err)
		}
		if f.open != 0 {
			t.Errorf("%d connections are left open", f.open)
		}
		time.Sleep(2 * time.Hour) // the statement that never came
	})
}

// What is free is taken over one connection, in one request each; what was waited for has one of its own.
func TestConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newServer()
		a, b := f.session(t, f), f.session(t, f)
		var mine, next []driver.Claim
		for _, name := range []string{"one", "two", "three", "four"} {
			c := mutex(name)
			asks(t, a, c, true)
			mine = append(mine, c)
		}
		if f.open != 2 || f.asked["Try"] != 4 {
			t.Errorf("%d connections and %d requests for two sessions and four locks", f.open, f.asked["Try"])
		}
		for _, c := range mine[:3] {
			n := mutex(c.Name)
			asks(t, b, n, false)
			next = append(next, n)
		}
		if _, err := b.Acquire(t.Context(), mutex("four")); !errors.Is(err, driver.ErrUnable) || !errors.Is(err, driver.ErrNotSent) {
			t.Errorf("one claim too many waits: %v", err)
		}
		for i := range next {
			leaves(t, a, mine[i], true)
			awaits(t, b, next[i])
			leaves(t, b, next[i], true)
		}
		if f.open != 2+idle {
			t.Errorf("%d connections are kept, want %d", f.open, 2+idle)
		}
		if err := errors.Join(a.Close(t.Context()), b.Close(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// To break a lock is to end its connection: who has it or waits for it is told. That is done neither where others would lose theirs by it, nor
// to whom nobody has named.
func TestBreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newServer()
		driverA, a := f.start(t, f)
		driverB, b := f.start(t, f)
		mine, next, other := mutex("line"), mutex("line"), mutex("other")
		asks(t, a, mine, true)
		asks(t, b, next, false)
		l, err := driverA.Line(t.Context(), "line")
		if err != nil || len(l.Claims) != 2 || !l.Claims[0].Held || l.Claims[1].Held {
			t.Fatalf("Line: %+v, %v; want one who holds and one who waits", l, err)
		}
		breaks := func(i int, fence uint64, now bool, want error) {
			t.Helper()
			if err := driverA.Break(t.Context(), "line", l.Claims[i].PublicID, fence, now); !errors.Is(err, want) {
				t.Errorf("Break: %v; want %v", err, want)
			}
		}
		breaks(0, 7, true, driver.ErrRefused)
		breaks(0, 0, false, driver.ErrOnlyNow)
		asks(t, a, other, true)
		breaks(0, 0, true, errors.ErrUnsupported)
		leaves(t, a, other, true)
		breaks(1, 0, false, nil)
		storetest.Told(t, b, next)
		breaks(0, 0, true, nil)
		storetest.Told(t, a, mine)
		f.nobody(t, "line")
		breaks(0, 0, true, driver.ErrRefused)
		_, _ = driverA.Close(t.Context())
		_, _ = driverB.Close(t.Context())
		if _, err := driverA.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute}); !errors.Is(err, driver.ErrNotSent) {
			t.Errorf("Open after Close: %v", err)
		}
	})
}

// A connection is given again what it has, but no claim is: the second one of a session waits for the first.
func TestNotReentrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newServer()
		s := f.session(t, f)
		one, two := mutex("again"), mutex("again")
		asks(t, s, one, true)
		asks(t, s, two, false)
		leaves(t, s, one, true)
		awaits(t, s, two)
		leaves(t, s, two, true)
		_ = s.Close(t.Context())
	})
}

// The end of a connection is told to the owners of its locks, and to nobody else; the session goes on.
func TestLossOfOneConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newServer()
		a, b := f.session(t, f), f.session(t, f)
		theirs, waited, mine := mutex("waited"), mutex("waited"), mutex("at once")
		asks(t, b, theirs, true)
		asks(t, a, waited, false)
		leaves(t, b, theirs, true)
		awaits(t, a, waited)
		asks(t, a, mine, true)
		end := f.has("at once")
		end.Close()
		end.ended()
		if l := <-a.Lost(); l.ID != mine.ID {
			t.Error("another claim is told to be lost")
		}
		if r, err := a.Renew(t.Context()); err != nil || len(r.Lost) != 1 || r.Lost[0].ID != mine.ID {
			t.Errorf("Renew: %+v, %v; want one claim lost", r, err)
		}
		leaves(t, a, mine, false)
		leaves(t, a, waited, true)
		f.nobody(t, "at once")
		f.nobody(t, "waited")
		silent := f.holdingOf(t, a)
		silent.Close() // and nobody notices, as where a connection does not read
		asks(t, a, mutex("after"), true)
		_ = a.Close(t.Context())
		_ = b.Close(t.Context())
	})
}

// Who gives up in the moment in which he gets the lock gives it back.
func TestCancelComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newServer()
		a, b := f.session(t, f), f.session(t, f)
		for _, late := range []bool{false, true} {
			mine, next := mutex("late"), mutex("late")
			asks(t, a, mine, true)
			asks(t, b, next, false)
			f.cancelling = func(*link) {
				if late {
					leaves(t, a, mine, true)
					synctest.Wait()
				}
			}
			leaves(t, b, next, late)
			if !late {
				leaves(t, a, mine, true)
			}
			f.nobody(t, "late")
		}
		if f.dialed != 3 {
			t.Errorf("%d connections were made, want 3", f.dialed)
		}
		_ = a.Close(t.Context())
		_ = b.Close(t.Context())
	})
}

// A renewal without an answer ends no connection, and what it has asked is asked.
func TestRenewalIsLeftRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newServer()
		s := f.session(t, f)
		mine := mutex("renewed")
		asks(t, s, mine, true)
		f.quiet = make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Renew(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Renew without an answer: %v", err)
		}
		close(f.quiet)
		if r, err := s.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
			t.Errorf("Renew: %+v, %v", r, err)
		}
		leaves(t, s, mine, true)
		_ = s.Close(t.Context())
	})
}

// A grant that comes behind a renewal which passed over it is renewed before it is told.
func TestWaitRenewsWhatWasPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newServer()
		a, b := f.session(t, f), f.session(t, f)
		mine, next := mutex("unheard"), mutex("unheard")
		asks(t, a, mine, true)
		asks(t, b, next, false)
		if _, err := b.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		leaves(t, a, mine, true)
		synctest.Wait()
		before := f.count("Ping")
		awaits(t, b, next)
		awaits(t, b, next)
		if n := f.count("Ping") - before; n != 1 {
			t.Errorf("%d renewals of a claim that was passed over, want 1", n)
		}
		_ = a.Close(t.Context())
		_ = b.Close(t.Context())
	})
}

// A session that is closed hands over, and its claims are nowhere.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newServer()
		a, b, c := f.session(t, f), f.session(t, f), f.session(t, f)
		mine, next, third := mutex("closed"), mutex("closed"), mutex("closed")
		asks(t, a, mine, true)
		asks(t, b, next, false)
		asks(t, c, third, false)
		if err := errors.Join(b.Close(t.Context()), a.Close(t.Context())); err != nil {
			t.Error(err)
		}
		awaits(t, c, third)
		if _, err := a.Acquire(t.Context(), mine); !errors.Is(err, driver.ErrSessionLost) {
			t.Errorf("Acquire after Close: %v", err)
		}
		leaves(t, a, mine, false)
		_ = c.Close(t.Context())
		f.nobody(t, "closed")
	})
}

// A claim that is requeued stands in line before the old one is out of it: nobody gets in between, and who waits is before it.
func TestRequeue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newServer()
		a, b, c := Requeuer{f.session(t, f)}, f.session(t, f), f.session(t, f)
		mine := mutex("requeued")
		asks(t, a.Session, mine, true)
		requeue := func(next driver.Claim, held bool) {
			t.Helper()
			if g, was, err := a.Requeue(t.Context(), mine, next); err != nil || g.Held != held || !was {
				t.Fatalf("Requeue: held %v, was held %v, %v; want held %v", g.Held, was, err, held)
			}
			mine = next
		}
		f.slow = time.Second
		f.between = func(*link) {
			other := mutex("requeued")
			other.Queue = false
			if g, err := c.Acquire(t.Context(), other); err != nil || g.Held {
				t.Errorf("somebody got in between: held %v, %v", g.Held, err)
			}
			if _, err := c.Release(t.Context(), other); err != nil {
				t.Error(err)
			}
		}
		requeue(mutex("requeued"), true)
		f.slow = 0
		requeue(mutex("requeued"), true)
		waits := mutex("requeued")
		asks(t, b, waits, false)
		requeue(mutex("requeued"), false)
		awaits(t, b, waits)
		leaves(t, b, waits, true)
		awaits(t, a.Session, mine)

		f.between = func(l *link) { l.Close() } // the old one is lost on the way
		next := mutex("requeued")
		if g, was, err := a.Requeue(t.Context(), mine, next); err != nil || was {
			t.Fatalf("Requeue of what is lost on the way: %+v, was held %v, %v", g, was, err)
		}
		awaits(t, a.Session, next)
		f.between = nil
		asks(t, b, waits, false)
		denied := mutex("requeued")
		denied.Queue, mine = false, next
		requeue(denied, false)
		awaits(t, b, waits)
		leaves(t, b, waits, true)
		f.nobody(t, "requeued")
		for _, s := range []*Session{a.Session, b, c} {
			_ = s.Close(t.Context())
		}
	})
}

// What a strict handoff costs whoever hands over: a statement that waits and one that gives back.
func TestRequestsOfARequeue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newServer()
		a := Requeuer{f.session(t, f)}
		mine := mutex("counted")
		asks(t, a.Session, mine, true)
		for range 3 {
			clear(f.asked)
			f.between = func(*link) { synctest.Wait() } // the other statement was quicker
			next := mutex("counted")
			if _, _, err := a.Requeue(t.Context(), mine, next); err != nil {
				t.Fatal(err)
			}
			if len(f.asked) != 2 || f.asked["Wait"] != 1 || f.asked["Hand"] != 1 {
				t.Errorf("a Requeue costs %v, want one Wait and one Hand", f.asked)
			}
			mine = next
		}
		if f.dialed != 3 {
			t.Errorf("%d connections were made, want the holding one and two in turn", f.dialed)
		}
		clear(f.asked)
		f.between, f.slow = nil, time.Second
		next := mutex("counted")
		if _, _, err := a.Requeue(t.Context(), mine, next); err != nil {
			t.Fatal(err)
		}
		b := f.session(t, f)
		waits := mutex("counted")
		asks(t, b, waits, false)
		for name, n := range f.asked {
			if n > 6 {
				t.Errorf("%s was asked %d times by who could do nothing but wait", name, n)
			}
		}
		leaves(t, a.Session, next, true)
		awaits(t, b, waits)
		_ = b.Close(t.Context())
		_ = a.Close(t.Context())
	})
}

// Locks that need a connection each draw their tokens over the holding one. Without a token there is no lock.
func TestApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &rows{server: newServer()}
		a, b := f.session(t, f), f.session(t, f)
		mine, next := mutex("row"), mutex("row")
		if g := asks(t, a, mine, true); g.Fence != 77 || f.open != 3 {
			t.Errorf("token %d, %d connections", g.Fence, f.open)
		}
		asks(t, b, next, false)
		leaves(t, a, mine, true)
		awaits(t, b, next)
		leaves(t, b, next, true)
		f.unlucky = errors.New("unlucky")
		bad := mutex("row")
		if _, err := a.Acquire(t.Context(), bad); err == nil {
			t.Errorf("a lock without a token: %v", err)
		}
		leaves(t, a, bad, false)
		f.nobody(t, "row")
		f.unlucky, f.absent = nil, true
		not := mutex("row")
		not.Queue = false
		asks(t, a, not, false)
		_ = a.Close(t.Context())
		_ = b.Close(t.Context())
	})
}
