package rowline

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The order is subscribe, look, wait: who was not heard for when he asked asks again, once.
func TestLookAfterListening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newServer()
		a, b := f.open(t, true), f.open(t, true)
		mine, next := mutex("line"), mutex("line")
		asks(t, a, mine, true)
		asks(t, b, next, false)
		f.set(func() { f.mute = true })
		leaves(t, a, mine, true)
		f.set(func() {
			close(f.sub)
			f.sub, f.mute = make(chan struct{}), false
		})
		awaits(t, b, next)
		if n := f.count("look"); n != 1 {
			t.Errorf("%d looks, want 1", n)
		}
		closes(t, a, b)
	})
}

// Without ears those who wait ask, the first one in line ten times as often as the others; and so
// do all while ears fail, now and then.
func TestPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newServer()
		a, b, c := f.open(t, false), f.open(t, false), f.open(t, false)
		mine, next, last := mutex("line"), mutex("line"), mutex("line")
		looks := func(s *Session, c driver.Claim) int {
			before := f.count("look")
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second+time.Millisecond)
			defer cancel()
			if g, err := s.Wait(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Wait: %+v, %v; want the caller's end", g, err)
			}
			return f.count("look") - before
		}
		asks(t, a, mine, true)
		asks(t, b, next, false)
		if n := looks(b, next); n != 80 {
			t.Errorf("the first in line asked %d times in 2 s, want 80", n)
		}
		asks(t, c, last, false)
		if n := looks(c, last); n != 8 {
			t.Errorf("the second in line asked %d times in 2 s, want 8", n)
		}
		d, deprived := f.open(t, true), mutex("line")
		f.set(func() { f.failure = driver.ErrNotSent })
		asks(t, d, deprived, false)
		if n := looks(d, deprived); n != 8 {
			t.Errorf("one without an ear asked %d times in 2 s, want 8", n)
		}
		closes(t, a, b, c, d)
		f.nobody(t, "line")
	})
}

// Nobody tells that a holder's time is over: the first in line looks then, and renews nothing by
// that.
func TestHolderDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newServer()
		a, b := f.open(t, true), f.open(t, true)
		mine, next := mutex("line"), mutex("line")
		asks(t, a, mine, true)
		over := time.Now().Add(ttl)
		asks(t, b, next, false)
		time.Sleep(ttl / 2)
		renews(t, b)
		until := f.until[b.id]
		awaits(t, b, next)
		if late := time.Since(over); late < 0 || late > 10*time.Millisecond {
			t.Errorf("let in %v after the end of the holder's time", late)
		}
		if f.until[b.id] != until {
			t.Error("a look renewed the session")
		}
		if _, err := a.Renew(t.Context()); !errors.Is(err, driver.ErrSessionLost) {
			t.Errorf("Renew of a session that is over: %v", err)
		}
		if _, err := a.Wait(t.Context(), mine); !errors.Is(err, driver.ErrSessionLost) {
			t.Errorf("Wait in a session that is over: %v", err)
		}
		closes(t, a, b)
	})
}

// Where a Renew does not reach who waits, a claim that was let in while one was under way is
// renewed before its Wait returns; and only such a one.
func TestRenewPassesOverWhoWaits(t *testing.T) {
	for _, c := range []struct {
		lineless, renew bool
		want            int
	}{{true, true, 1}, {true, false, 0}, {false, true, 0}} {
		synctest.Test(t, func(t *testing.T) {
			f := newServer()
			a, b := f.open(t, false), f.open(t, false)
			b.d.Lineless, f.blind = c.lineless, c.lineless
			mine, next := mutex("line"), mutex("line")
			asks(t, a, mine, true)
			asks(t, b, next, false)
			leaves(t, a, mine, true)
			f.set(func() { f.back = time.Second }) // of the look that lets it in
			go func() {
				time.Sleep(100 * time.Millisecond)
				f.set(func() { f.back = 0 })
				if c.renew {
					renews(t, b)
				}
			}()
			awaits(t, b, next)
			if f.anew != c.want {
				t.Errorf("%+v: renewed %d times before its Wait returned", c, f.anew)
			}
			f.set(func() { f.back = 0 })
			leaves(t, b, next, true)
			closes(t, a, b)
		})
	}
}
