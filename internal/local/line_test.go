package local

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
	"github.com/interlock-go/interlock/internal/fault"
	"github.com/interlock-go/interlock/internal/keepalive"
)

// noted are the actions of a line that nobody carries out.
type noted struct{ asked []*claim }

func (n *noted) acquireAfter(c *claim, _ time.Duration)        { n.asked = append(n.asked, c) }
func (n *noted) releaseAfter(*Hold, time.Duration) *time.Timer { return time.NewTimer(time.Hour) }
func (n *noted) removeIfIdle(*line)                            {}
func (n *noted) take() (asked []*claim)                        { asked, n.asked = n.asked, nil; return asked }

// onPaper is a line by itself, without a store, and what it asks for.
func onPaper() (*line, *noted) {
	n := &noted{}
	c := clock.New(func(time.Duration) time.Duration { return 0 })
	return &line{name: "m", host: &host{
		Config: &Config{
			Clock: c, Patience: time.Minute, MaxWaiters: 100,
			Held:  func(*driver.Holder) error { return fault.ErrHeld },
			Holds: new(atomic.Int64), Left: new(atomic.Int64), Ended: func() {}, Log: func(slog.Level, string, ...any) {},
		},
		actions: n, silence: &keepalive.Silence{},
	}}, n
}

// wanting is a waiter of a kind.
func wanting(k driver.Kind, note string) *waiter {
	r := Request{Name: "m", Mode: Mode{Kind: k, Weight: driver.All, Limit: driver.All, Note: note}, Grace: time.Second}
	if k == driver.Read {
		r.Weight = 1
	}
	return &waiter{Request: r, ready: make(chan struct{})}
}

func (w *waiter) String() string {
	switch {
	case w.queued:
		return "waits"
	case w.err != nil:
		return w.err.Error()
	case w.hold != nil:
		return "holds"
	}
	return "gone"
}

func states(all ...*waiter) string {
	var words []string
	for _, w := range all {
		words = append(words, w.String())
	}
	return strings.Join(words, ", ")
}

// The first waiter is asked for, and nobody behind it; a claim of another shape is asked for when
// its waiter is the first.
func TestLine_OneClaimStandsForTheFirst(t *testing.T) {
	l, n := onPaper()
	a, b, c := wanting(driver.Mutex, ""), wanting(driver.Mutex, ""), wanting(driver.Mutex, "another note")
	for i, w := range []*waiter{a, b, c} {
		asked, err := l.enter(w)
		if err != nil || (asked != nil) != (i == 0) {
			t.Fatalf("waiter %d is to ask for %v, %v: want the first alone", i, asked, err)
		}
	}
	first := l.pending
	for _, of := range []struct {
		leaves *waiter
		asks   int // claims, since the one that stands suits nobody who comes first
	}{{a, 0}, {b, 1}, {c, 0}} {
		l.waiters.remove(of.leaves)
		l.settle()
		if asked := n.take(); len(asked) != of.asks {
			t.Errorf("%d claims are asked for, want %d", len(asked), of.asks)
		}
	}
	if first.Note != "" || l.pending != nil || l.waiters.length > 0 || len(l.held) > 0 {
		t.Errorf("when all have left %v stands, want nothing", l.pending)
	}
}

// Who will not wait is refused as soon as it is known that it would have to, and not before.
func TestLine_TriesAreRefusedWhenTheyWouldWait(t *testing.T) {
	l, n := onPaper()
	first, try := wanting(driver.Mutex, ""), wanting(driver.Mutex, "")
	try.Try = true
	c, _ := l.enter(first)
	if _, err := l.enter(try); err != nil {
		t.Fatalf("a try beside a claim of which nothing is known: %v, want that it stands", err)
	}
	c.state = waiting
	l.settle()
	if got := states(first, try); got != "waits, "+fault.ErrHeld.Error() {
		t.Errorf("%s: want that the try is refused once the claim waits", got)
	}
	if _, err := l.enter(&waiter{Request: try.Request, ready: make(chan struct{})}); !errors.Is(err, fault.ErrHeld) {
		t.Errorf("a try behind a claim that waits: %v, want ErrHeld", err)
	}
	if asked := n.take(); len(asked) > 0 || l.waiters.tries != 0 {
		t.Errorf("%d claims are asked for and %d tries stand, want none", len(asked), l.waiters.tries)
	}
}

// A store that failed is asked again after a pause, once whoever settles the line meanwhile.
func TestLine_AFailedStoreIsAskedOnceForAll(t *testing.T) {
	l, n := onPaper()
	a, b := wanting(driver.Mutex, ""), wanting(driver.Mutex, "")
	c, _ := l.enter(a)
	_, _ = l.enter(b)
	l.failed(c, false, errors.New("it fails"))
	l.settle()
	l.settle()
	if asked := n.take(); len(asked) != 1 || l.failures != 1 || l.host.silence.Err() == nil {
		t.Errorf("%d claims are asked for after %d failures (%v), want one after one", len(asked), l.failures, l.host.silence.Err())
	}
	try := wanting(driver.Mutex, "")
	try.Try = true
	if _, err := l.enter(try); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("a try at a store that fails: %v, want ErrUnavailable", err)
	}
	l.failed(l.pending, false, fmt.Errorf("no: %w", driver.ErrRefused))
	if got := states(a, b); got != "no: "+driver.ErrRefused.Error()+", waits" {
		t.Errorf("%s: want that who is refused leaves, and the next waits", got)
	}
}
