package storetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
)

// FiftyWait has fifty claims of a session wait, over a pool of four connections, of which none is kept for one who waits or holds.
func FiftyWait(t *testing.T, s driver.Session, inUse func() int) {
	t.Helper()
	mine := Mutex("pool")
	Asks(t, s, mine, true)
	if n := inUse(); n != 0 {
		t.Fatalf("%d connections of the pool are kept while one lock is held, want none", n)
	}
	var all sync.WaitGroup
	for range 50 {
		next := Mutex("pool")
		Asks(t, s, next, false)
		all.Go(func() {
			Awaits(t, s, next)
			Leaves(t, s, next, true)
		})
	}
	Leaves(t, s, mine, true)
	all.Wait()
}

// TakenAway has an operator take a claim away, marked or at once: its Release says what the store says.
func TakenAway(t *testing.T, url string) {
	t.Helper()
	a, b := User(t, url), User(t, url)
	operator, err := driver.OpenURL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer operator.Close(t.Context())
	for _, now := range []bool{false, true} {
		mine, next := Mutex("taken"), Mutex("taken")
		g := Asks(t, a, mine, true)
		if err := operator.(driver.Inspector).Break(t.Context(), "taken", driver.PublicID(mine.ID), g.Fence, now); err != nil {
			t.Fatal(err)
		}
		Leaves(t, a, mine, false)
		Asks(t, b, next, true)
		Leaves(t, b, next, true)
	}
}

// CutOff has a holder's network carry nothing any more, while its connection stays open for hours. Soon has the times of all sessions end
// shortly by the database's clock, so that a slow machine has all the time that it needs before.
func CutOff(t *testing.T, s *servertest.Server, url string, soon func()) {
	t.Helper()
	w := wire.New(t, s.Addr())
	a, err := Enter(t, strings.Replace(url, s.Addr(), w.Addr(), 1), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	Asks(t, a, Mutex("cut"), true)
	heal := w.Stall(wire.Both)
	defer heal()
	soon()
	b, next := User(t, url), Mutex("cut")
	if _, err := b.Acquire(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		g, err := b.Wait(ctx, next)
		if g.Held {
			return
		}
		if err != nil {
			t.Fatalf("the next one still waits, 30 s after a holder was cut off whose session was over: %v", err)
		}
	}
}

// NamesAreWhole takes names side by side that a store might take for one.
func NamesAreWhole(t *testing.T, s driver.Session) {
	t.Helper()
	long := strings.Repeat("x", 1000)
	for _, name := range []string{long + "1", long + "2", "a", "A", "ä", "a ", "a\x00", "a\x00b", "a'\\", "\xff\xfe"} {
		if g, err := s.Acquire(t.Context(), Tries(name)); err != nil || !g.Held {
			t.Errorf("a name of %d bytes that nobody has: held %v, %v; it is taken for another one", len(name), g.Held, err)
		}
	}
}

// GivesUp hands the lock of a name over again and again to one who gives up in that moment, in more and more of these steps. Remains counts
// what stands there then, for nobody.
func GivesUp(t *testing.T, url, name string, rounds int, step time.Duration, remains func() int) {
	t.Helper()
	a, b := User(t, url), User(t, url)
	for i := range rounds {
		mine, next := Mutex(name), Mutex(name)
		Asks(t, a, mine, true)
		Asks(t, b, next, false)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*step)
		var both sync.WaitGroup
		both.Go(func() { _, _ = b.Wait(ctx, next) })
		both.Go(func() { Leaves(t, a, mine, true) })
		both.Wait()
		cancel()
		if _, err := b.Release(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		if n := remains(); n != 0 {
			t.Fatalf("%d claims stand there for nobody, after round %d", n, i)
		}
	}
}

// ClockIsOff has the clock of a server be hours off ours, one way and the other: a lease of half an hour is over when that clock has gone on by
// more, and not before.
func ClockIsOff(t *testing.T, s *servertest.Server) {
	t.Helper()
	for _, step := range []time.Duration{time.Hour, -3 * time.Hour} {
		if err := s.Step(step); err != nil {
			t.Fatal(err)
		}
		a, err := Enter(t, s.URL(), 30*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Enter(t, s.URL(), 10*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		next := Mutex(step.String())
		Asks(t, a, Mutex(next.Name), true)
		Asks(t, b, next, false)
		if err := s.Step(40 * time.Minute); err != nil {
			t.Fatal(err)
		}
		Until(t, "the next one holds", func() bool {
			g, err := b.Acquire(t.Context(), next)
			if err != nil && !errors.Is(err, driver.ErrNotSent) { // the clock has leapt
				t.Fatal(err)
			}
			return g.Held
		})
		Leaves(t, b, next, true)
	}
}
