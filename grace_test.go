package interlock_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// A default of the grace: TTL/10, at least 2 ms, at most TTL/3.
func TestGrace_Default(t *testing.T) {
	for ttl, want := range map[time.Duration]time.Duration{
		10 * time.Millisecond: 2 * time.Millisecond,
		20 * time.Millisecond: 2 * time.Millisecond,
		30 * time.Millisecond: 3 * time.Millisecond,
		time.Hour:             6 * time.Minute,
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newClient(t, memlock.New(), nil)
			l := hold(t, c, "m", interlock.TTL(ttl))
			if got := ttl - time.Until(l.Until()); got != want {
				t.Errorf("TTL %v: grace %v, want %v", ttl, got, want)
			}
			l.Release()
		})
	}
}

// The longest grace that is accepted can be kept, by a store that takes its time, too.
func TestGrace_TheLongestIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &spy{Driver: memlock.New()}
		d.ahead(func(ctx context.Context, _ string, _ driver.Claim) error {
			slow(ctx, time.Second)
			return nil
		})
		c := newClient(t, d, nil)
		longest := 15 * time.Second
		for c.Mutex("m", interlock.Grace(longest)).Err() != nil {
			longest -= 100 * time.Millisecond
		}
		l := hold(t, c, "m", interlock.Grace(longest))
		time.Sleep(10 * time.Minute)
		outlived(t, l, "ten minutes with a grace of a third of the TTL")
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	})
}

// A store that grants again and again when too little trust is left is too slow for this TTL and
// this grace: that is said, and the name is not taken from the others without end.
func TestGrant_TooLateTimeAfterTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		d := &spy{Driver: store.Share()}
		d.ahead(func(ctx context.Context, op string, _ driver.Claim) error {
			if op == "acquire" {
				slow(ctx, 6*time.Second)
			}
			return nil
		})
		c := newClient(t, d, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		_, err := c.Mutex("m", interlock.Grace(5*time.Second)).Lock(ctx)
		if n := d.count("acquire"); n > 5 {
			t.Errorf("%d acquires, of which each takes the name from others", n)
		}
		for _, part := range []string{"15s", "5s", "6s", "want a longer TTL or a shorter grace"} {
			if !errors.Is(err, interlock.ErrUnavailable) || !strings.Contains(err.Error(), part) {
				t.Errorf("%v, want ErrUnavailable and %q", err, part)
			}
		}
		synctest.Wait()
		if got := standing(t, d.Driver, "m"); len(got) != 0 {
			t.Errorf("left in line: %+v", got)
		}
	})
}

// A store that keeps sessions for less than it is asked for cannot give every grace; that is said,
// and never tried without end, also when who wants it comes to be first with the claim of another.
func TestTrust_GraceThatTheStoreCannotGive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.NewPersonality(memlock.Personality{Clamp: 2 * time.Second})
		other, c := newClient(t, store, nil), newClient(t, store.Share(), nil)
		short, long := interlock.Grace(800*time.Millisecond), interlock.Grace(801*time.Millisecond)
		start := time.Now()
		if _, err := c.Mutex("m", long).Lock(t.Context()); !errors.Is(err, errors.ErrUnsupported) || !time.Now().Equal(start) {
			t.Errorf("%v after %v, want ErrUnsupported at once", err, time.Since(start))
		}
		l := hold(t, other, "m", short)
		first, second := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := c.Mutex("m", short, interlock.Wait(time.Second)).Lock(t.Context())
			first <- err
		}()
		synctest.Wait()
		go func() {
			_, err := c.Mutex("m", long).Lock(t.Context())
			second <- err
		}()
		if err := <-first; !errors.Is(err, interlock.ErrHeld) {
			t.Error(err)
		}
		if err := l.Release(); err != nil {
			t.Error(err)
		}
		if err := <-second; !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%v, want ErrUnsupported", err)
		}
		synctest.Wait()
		if got := standing(t, store, "m"); len(got) != 0 {
			t.Errorf("left in line: %+v", got)
		}
	})
}

// What a store gives that keeps sessions for another time than its traits say is shown once that is
// known: by Err, where a grace was chosen that does not go with it, by Until, and once in the log
// where a TTL was chosen.
func TestClamp_IsShown(t *testing.T) {
	for _, tt := range []struct {
		clamp  time.Duration
		chosen time.Duration // 0: nobody chose a TTL
		said   int
	}{
		{clamp: 2 * time.Second, chosen: 10 * time.Second, said: 1},
		{clamp: 2 * time.Second},
		{clamp: 8 * time.Second, chosen: 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log heard
			c := newClient(t, memlock.NewPersonality(memlock.Personality{Clamp: tt.clamp}), &interlock.Options{TTL: tt.chosen, Logger: slog.New(&log)})
			long := interlock.Grace(tt.clamp*2/5 + time.Millisecond)
			if tt.clamp > 5*time.Second {
				long = interlock.Grace(3 * time.Second)
			}
			handles := []interface{ Err() error }{
				c.Mutex("a", long), c.RWMutex("b", long), c.Semaphore("c", 2, long), c.Election("d", long), c.Multi([]string{"e", "f"}, long),
				c.Mutex("a", long, interlock.Isolated()),
			}
			for _, h := range handles {
				if err := h.Err(); err != nil {
					t.Errorf("before anything is known: %v", err)
				}
			}
			for _, name := range []string{"a", "b"} {
				l := hold(t, c, name, interlock.Isolated())
				if d := time.Until(l.Until()); d >= tt.clamp {
					t.Errorf("a lease of %v from a store that keeps sessions for %v", d, tt.clamp)
				}
				release(t, l)
			}
			for _, h := range handles {
				if err := h.Err(); errors.Is(err, errors.ErrUnsupported) != (tt.clamp < 5*time.Second) {
					t.Errorf("a grace of two fifths of what a session is kept for and a little more: Err says %v", err)
				}
			}
			synctest.Wait()
			if got := log.count("another time than their TTL"); got != tt.said {
				t.Errorf("a TTL of %v, where sessions are kept for %v, is in the log %d times, want %d", tt.chosen, tt.clamp, got, tt.said)
			}
		})
	}
}

// heard counts what is logged.
type heard struct {
	mu  sync.Mutex
	all []string
}

func (h *heard) Enabled(context.Context, slog.Level) bool { return true }

func (h *heard) Handle(_ context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, r.Message)
	return nil
}

func (h *heard) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h *heard) WithGroup(string) slog.Handler      { return h }

func (h *heard) count(part string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.all {
		if strings.Contains(m, part) {
			n++
		}
	}
	return n
}

// lateSession is a session whose first renewal is good for less than it is itself, as one that came
// late.
type lateSession struct {
	driver.Session
	renewals atomic.Int64
}

func (s *lateSession) Renew(ctx context.Context) (driver.Renewal, error) {
	r, err := s.Session.Renew(ctx)
	if s.renewals.Add(1) == 1 {
		r.Valid = 3 * time.Second
	}
	return r, err
}

// One renewal that is good for less says nothing of what the store can give.
func TestTrust_ALateRenewalTurnsNobodyAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, changed{memlock.New(), func(s everySession) driver.Session { return &lateSession{Session: s} }}, nil)
		first := hold(t, c, "first")
		for time.Until(first.Until()) > 3*time.Second {
			time.Sleep(100 * time.Millisecond)
		}
		l := hold(t, c, "m", interlock.Grace(1300*time.Millisecond))
		time.Sleep(time.Minute)
		if err := l.Err(); err != nil {
			t.Error(err)
		}
	})
}
