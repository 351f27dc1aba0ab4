package redislock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
)

// What the core proves with a store in memory, where it depends on what Redis does: rows A of
// clients and L of leases.

// wired opens a client behind a wire.
func wired(t *testing.T, s *servertest.Server, o *interlock.Options) (*interlock.Client, *wire.Wire) {
	t.Helper()
	w := wire.New(t, s.Addr())
	return open(t, "redis://"+w.Addr(), o), w
}

// A2: a release that comes after the lease is over deletes what another holds by now, be that ours
// or another program's.
func TestA02_ALateReleaseDeletesNobodysLock(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"ours", "ours with a line", "another program's"} {
		t.Run(next, func(t *testing.T) {
			t.Parallel()
			s := servertest.Redis(t)
			a, w := wired(t, s, ttl(time.Second))
			b, c := open(t, s.URL(), ttl(ample)), open(t, s.URL(), ttl(ample))
			late := hold(t, a.Mutex("m"))
			heal := w.Stall(wire.Both)
			eventually(t, "the lease is over", func() bool { return s.MustDo(t, "EXISTS", "m") == "0" })
			var held *interlock.Lease
			if next == "another program's" {
				s.MustDo(t, "SET", "m", "theirs", "NX", "PX", "60000")
			} else {
				held = hold(t, b.Mutex("m"))
			}
			waiting := make(<-chan grant)
			if next == "ours with a line" {
				waiting = asking(t.Context(), c.Mutex("m"))
				waitsFor(t, s, "m", 1)
			}
			before := s.MustDo(t, "GET", "m")
			heal()
			if err := late.Release(); !errors.Is(err, interlock.ErrLost) {
				t.Errorf("the late release: %v, want %v", err, interlock.ErrLost)
			}
			release(t, hold(t, a.Mutex("behind"))) // the connection has carried what was to be sent
			if after := s.MustDo(t, "GET", "m"); after != before {
				t.Errorf("after the late release the name has %q, want %q", after, before)
			}
			if held != nil {
				release(t, held)
			}
			if next == "ours with a line" {
				release(t, get(t, waiting).Lease)
			}
		})
	}
}

// A3, A13: a call that was cancelled after its request had left keeps nothing, and does not block
// whoever asks next: be the request held back, or its answer.
func TestA03_ACancelledCallLeavesNothing(t *testing.T) {
	t.Parallel()
	for what, way := range map[string]wire.Direction{"requests held": wire.Requests, "answers held": wire.Replies, "both": wire.Both} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := servertest.Redis(t)
			a, w := wired(t, s, ttl(age))
			other := open(t, s.URL(), ttl(age))
			release(t, hold(t, a.Mutex("warm")))
			for range 10 {
				heal := w.Stall(way)
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond+rand.N(20*time.Millisecond))
				_, err := a.Mutex("m").Lock(ctx)
				cancel()
				if err == nil || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, interlock.ErrHeld) {
					t.Fatalf("a lock that was not answered: %v", err)
				}
				heal()
				// Long before anybody's time is over: nothing but the release lets these in.
				l := within(t, prompt, "the lock that a cancelled call asked for is free", asking(t.Context(), other.Mutex("m"))).Lease
				release(t, l)
				again := hold(t, a.Mutex("m"))
				if again.Fence() <= l.Fence() {
					t.Errorf("token %d after %d", again.Fence(), l.Fence())
				}
				release(t, again)
			}
			eventually(t, "no claim stays", func() bool {
				notes := s.MustDo(t, "HKEYS", "il:{m}:claims:m") // when gaps were left to other programs
				return s.MustDo(t, "EXISTS", "m", "il:{m}:line:m") == "0" && len(strings.ReplaceAll(notes, "\n", "")) <= len("*#")
			})
		})
	}
}

// A5: an answer that took longer than the lease it tells of is no lease.
func TestA05_ALateAnswerIsNoLease(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	const lives = 500 * time.Millisecond
	for _, late := range []time.Duration{lives * 9 / 10, lives, lives * 12 / 10, 2 * lives} {
		a, w := wired(t, s, &interlock.Options{TTL: lives, Patience: ample})
		release(t, hold(t, a.Mutex("warm")))
		heal := w.Stall(wire.Replies)
		time.AfterFunc(late, heal)
		l := hold(t, a.Mutex("m"))
		// Told as held, it is: the server has it, and for longer than the lease is trusted.
		trust := time.Until(l.Until())
		left := time.Duration(number(t, s, "PTTL", "m")) * time.Millisecond
		if err := l.Err(); err == nil && (left <= 0 || left < time.Until(l.Until())) {
			t.Errorf("an answer %v late: the server keeps the lock for %v, the lease was trusted for %v", late, left, trust)
		}
		_ = l.Release()
	}
}

// A6: the release of one attempt, held back by the network, deletes the next attempt's lock.
func TestA06_TheReleaseOfAnEarlierAttempt(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	a, w := wired(t, s, ttl(ample))
	release(t, hold(t, a.Mutex("warm")))
	for range 10 {
		heal := w.Stall(wire.Both)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		_, err := a.Mutex("m").Lock(ctx)
		cancel()
		if err == nil {
			t.Fatal("locked without an answer")
		}
		next := make(chan grant, 1)
		go func() {
			l, err := a.Mutex("m").Lock(t.Context())
			next <- grant{l, time.Now(), err}
		}()
		heal()
		l := get(t, next).Lease
		release(t, hold(t, a.Mutex("behind"))) // whatever of the first attempt was under way has arrived, or comes again
		eventually(t, "the releases of the first attempt are over", func() bool { return w.Count().Requests.Held == 0 })
		if s.MustDo(t, "EXISTS", "m") != "1" || l.Err() != nil {
			t.Errorf("the second attempt's lock is gone: %v", l.Err())
		}
		release(t, l)
	}
}

// L5, L6: trust counts from the moment of sending, and a renewal does not last longer than what it
// renews: with answers that are slow, and then none at all, the holder is told before the server
// lets anybody in.
func TestL05_SlowAnswersLengthenNoLease(t *testing.T) {
	if testing.Short() {
		t.Skip("a margin in time: make proof")
	}
	t.Parallel()
	for _, slow := range []time.Duration{0, 50 * time.Millisecond, 150 * time.Millisecond} {
		t.Run(slow.String(), func(t *testing.T) {
			t.Parallel()
			s := servertest.Redis(t)
			// With this little grace, trust that counted from the answers would end after the key.
			a, w := wired(t, s, &interlock.Options{TTL: 2 * time.Second, Grace: 20 * time.Millisecond})
			b := open(t, s.URL(), ttl(ample))
			lease := hold(t, a.Mutex("m"))
			w.Delay(slow, 0)
			timer := time.NewTimer(1500*time.Millisecond + rand.N(time.Second)) // some renewals later, at any moment
			<-timer.C
			if err := lease.Err(); err != nil {
				t.Fatalf("lost although every answer came: %v", err)
			}
			waiting := asking(t.Context(), b.Mutex("m"))
			waitsFor(t, s, "m", 1)
			t.Cleanup(w.Stall(wire.Both))
			at := told(t, lease)
			next := get(t, waiting)
			if !at.Before(next.at) {
				t.Errorf("the next got in %v before the holder was told", at.Sub(next.at))
			}
			release(t, next.Lease)
		})
	}
}

// L7: a renewal revives nothing. A lock that another held in between is lost, although its name is
// free again.
func TestL07_ARenewalRevivesNothing(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	a, w := wired(t, s, ttl(time.Second))
	b := open(t, s.URL(), ttl(ample))
	lease := hold(t, a.Mutex("m"))
	readers := hold(t, shared{a.RWMutex("r")})
	heal := w.Stall(wire.Both)
	between := []*interlock.Lease{hold(t, b.Mutex("m")), hold(t, b.RWMutex("r"))}
	release(t, between...)
	heal()
	for what, l := range map[string]*interlock.Lease{"lease": lease, "reader": readers} {
		told(t, l)
		if err := l.Release(); !errors.Is(err, interlock.ErrLost) {
			t.Errorf("%s: released: %v, want %v", what, err, interlock.ErrLost)
		}
	}
	release(t, hold(t, a.Mutex("behind")))
	if keys := s.MustDo(t, "EXISTS", "m", "r"); keys != "0" {
		t.Errorf("%s of the names are taken again", keys)
	}
}
