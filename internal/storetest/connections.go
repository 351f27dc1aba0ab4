package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
)

// ConnectionEnds has end what holds the name "at_once", by the server: a connection takes its locks along, and no others, and their owners are
// told at once. Locks live with connections at this URL and at those of the functions below.
func ConnectionEnds(t *testing.T, url string, end func()) {
	t.Helper()
	a, b := User(t, url), User(t, url)
	theirs, waited := Mutex("waited"), Mutex("waited")
	Asks(t, b, theirs, true)
	Asks(t, a, waited, false)
	Leaves(t, b, theirs, true)
	Awaits(t, a, waited) // on a connection of its own
	mine, next := Mutex("at_once"), Mutex("at_once")
	Asks(t, a, mine, true)
	Asks(t, b, next, false)
	end()
	Told(t, a, mine)
	Awaits(t, b, next)
	if r, err := a.Renew(t.Context()); err != nil || len(r.Lost) != 1 || r.Lost[0].ID != mine.ID {
		t.Errorf("Renew: %+v, %v; want one claim lost", r, err)
	}
	if _, err := a.Acquire(t.Context(), mine); !errors.Is(err, driver.ErrGone) {
		t.Errorf("Acquire of what is lost: %v", err)
	}
	Leaves(t, a, mine, false)
	Leaves(t, a, waited, true)
	Leaves(t, b, next, true)
	other := Mutex("at_once")
	Asks(t, a, other, true) // the session goes on
	Leaves(t, a, other, true)
}

// NotRenewed has a session be over whose connection stands: so it is where nobody can tell the server that the holder is gone.
func NotRenewed(t *testing.T, url string) {
	t.Helper()
	a, err := Enter(t, url, 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	b, mine, next := User(t, url), Mutex("idle"), Mutex("idle")
	acquired := time.Now()
	if _, err := a.Acquire(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Acquire(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	Awaits(t, b, next)
	if early := a.Valid() - time.Since(acquired); early > 0 {
		t.Errorf("let in %v before the time of the holder, %v, was over", early, a.Valid())
	}
	if r, err := a.Renew(t.Context()); err != nil || len(r.Lost) != 1 {
		t.Errorf("Renew: %+v, %v; want one claim lost", r, err)
	}
}

// RenewalUnanswered has renewals get no answer in their time, which closes no connection: when the network is back the lock is there.
func RenewalUnanswered(t *testing.T, s *servertest.Server, url string) {
	t.Helper()
	w := wire.New(t, s.Addr())
	a, b := User(t, strings.Replace(url, s.Addr(), w.Addr(), 1)), User(t, url)
	mine := Mutex("renewed")
	g := Asks(t, a, mine, true)
	for _, way := range []wire.Direction{wire.Replies, wire.Both} {
		heal := w.Stall(way)
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			if _, err := a.Renew(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Renew without an answer: %v", err)
			}
			cancel()
		}
		heal()
		if r, err := a.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
			t.Fatalf("Renew when the network is back: %+v, %v; the lock went with a renewal that was given up", r, err)
		}
	}
	if again := Asks(t, a, mine, true); again.Fence != g.Fence {
		t.Errorf("token %d, and before %d", again.Fence, g.Fence)
	}
	if other, err := b.Acquire(t.Context(), Tries("renewed")); err != nil || other.Held {
		t.Errorf("another one: held %v, %v", other.Held, err)
	}
	Leaves(t, a, mine, true)
}
