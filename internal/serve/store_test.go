package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// What a store answers says whether it is there. That it refuses is an answer; that it says nothing
// for two seconds is none, whenever it comes back.
func TestReady(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &tried{Driver: memlock.New(), asked: make(chan struct{}, 100)}
		log := &lines{}
		s := newStore("one", "tried:", slog.New(slog.NewTextHandler(log, nil)))
		ready := func() bool { return s.ready(t.Context()) }
		if ready() {
			t.Error("it is ready before it is open")
		}
		if _, err := s.Line(t.Context(), "a"); !errors.Is(err, driver.ErrNotSent) {
			t.Errorf("before it is open a request is answered by %v", err)
		}
		s.opened(t.Context(), d)
		for _, c := range []struct {
			fails error
			want  bool
		}{
			{nil, true},
			{driver.ErrRefused, true},
			{driver.ErrBadData, true},
			{errors.ErrUnsupported, true},
			{errors.New("cut"), false},
			{driver.ErrNotSent, false},
			{errors.Join(driver.ErrRefused, driver.ErrNotSent), false},
			{context.DeadlineExceeded, false},
			{nil, true},
		} {
			time.Sleep(2 * probeAge)
			d.set(func() { d.fails = c.fails })
			if got := ready(); got != c.want {
				t.Errorf("answered by %v it is ready: %v, want %v", c.fails, got, c.want)
			}
		}
		if n := strings.Count(log.String(), "does not answer"); n != 1 {
			t.Errorf("that it is down is told %d times, want once:\n%s", n, log)
		}

		time.Sleep(2 * probeAge)
		gate := make(chan struct{})
		d.set(func() { d.gate = gate })
		began := time.Now()
		if ready() {
			t.Error("a store that does not answer is ready")
		}
		if took := time.Since(began); took != probeLimit {
			t.Errorf("that took %v, want %v", took, probeLimit)
		}
		d.set(func() { d.gate = nil })
		close(gate)

		// Who goes away while it is asked says nothing about it.
		if !ready() {
			t.Error("it is back, and not ready")
		}
		time.Sleep(2 * probeAge)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		d.set(func() { d.fails = context.Canceled })
		_, _ = s.Line(gone, "a")
		d.set(func() { d.fails = nil })
		if s.mu.Lock(); s.err != nil {
			t.Errorf("a request that was given up makes it down: %v", s.err)
		}
		s.mu.Unlock()
	})
}

// Of many who ask at the same time one asks the store; and the numbers for the metrics are read at
// most every ten seconds.
func TestOneAsksForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &tried{Driver: memlock.New(), asked: make(chan struct{}, 1000)}
		s := newStore("one", "tried:", slog.New(slog.DiscardHandler))
		s.opened(t.Context(), d)
		time.Sleep(2 * probeAge)
		gate := make(chan struct{})
		d.set(func() { d.gate = gate })
		for range 100 {
			go s.ready(t.Context())
		}
		synctest.Wait()
		if n := len(d.asked); n != 1 {
			t.Errorf("100 who ask whether it is there have asked it %d times", n)
		}
		close(gate)
		synctest.Wait()
		for range 60 { // a scrape each second
			s.listed(t.Context())
			time.Sleep(time.Second)
		}
		if d.lists != 6 {
			t.Errorf("a minute of scrapes has read %d lists, want 6", d.lists)
		}
	})
}

// A store that answers and does not let its names be listed is up. The log says why the list is
// missing, once, and when it is there again.
func TestRefusedListIsInTheLog(t *testing.T) {
	t.Parallel()
	one, at := newTried(t)
	log := &lines{}
	s := newStore("one", at, slog.New(slog.NewTextHandler(log, nil)))
	s.open(t.Context(), func(error) {})
	list := func(fails error) {
		one.set(func() { one.fails = fails })
		if _, err := s.Lines(t.Context(), ""); !errors.Is(err, fails) {
			t.Errorf("the list: %v, want %v", err, fails)
		}
	}
	count := func(says string, want int) {
		t.Helper()
		if n := strings.Count(log.String(), says); n != want {
			t.Errorf("the log has %q %d times, want %d:\n%s", says, n, want, log)
		}
	}
	refused := fmt.Errorf("%w: the password is another one", driver.ErrRefused)
	for range 3 {
		list(refused)
	}
	count("names cannot be listed", 1)
	count("the password is another one", 1)
	if !s.ready(t.Context()) {
		t.Error("a store that answers is not ready")
	}
	list(errors.ErrUnsupported) // says nothing of either
	list(nil)
	list(nil)
	count("can be listed again", 1)
	list(refused)
	count("names cannot be listed", 2)
}
