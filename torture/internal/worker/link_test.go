//go:build linux || darwin

package worker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/workers/monotonic"
	"github.com/interlock-go/interlock/memlock"
)

// sessionWith opens a session over a link whose cuts are those given, from now on.
func sessionWith(t *testing.T, l *link, cuts ...cut) (driver.Session, *linkSession) {
	t.Helper()
	l.Driver, l.ttl, l.end = memlock.New(), time.Second, monotonic.Now().Add(time.Hour)
	s, err := l.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	w, ok := s.(*linkSession)
	if r, requeues := s.(*requeuingSession); requeues {
		w, ok = r.linkSession, true
	}
	if !ok {
		t.Fatalf("a link opens a %T", s)
	}
	if len(cuts) > 0 {
		w.cuts.Store(&cuts)
	}
	return s, w
}

func mutex(name string) driver.Claim {
	return driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All}
}

// shortly is a context that ends while a cut is on.
func shortly(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func TestLinkHoldsRequests(t *testing.T) {
	s, w := sessionWith(t, &link{cuts: true}, cut{monotonic.Span{From: monotonic.Now(), To: monotonic.Now().Add(time.Hour)}, requests})
	c := mutex("a")
	if _, err := s.Acquire(shortly(t), c); !errors.Is(err, driver.ErrNotSent) {
		t.Errorf("got %v, want ErrNotSent: nothing left", err)
	}
	w.cuts.Store(nil)
	if held, err := s.Release(t.Context(), c); err != nil || held {
		t.Errorf("a request that was cut off arrived all the same: held %v, %v", held, err)
	}
}

func TestLinkHoldsReplies(t *testing.T) {
	s, w := sessionWith(t, &link{cuts: true}, cut{monotonic.Span{From: monotonic.Now(), To: monotonic.Now().Add(time.Hour)}, replies})
	c := mutex("a")
	if _, err := s.Acquire(shortly(t), c); err == nil || errors.Is(err, driver.ErrNotSent) {
		t.Errorf("got %v, want an unknown outcome", err)
	}
	w.cuts.Store(nil)
	if held, err := s.Release(t.Context(), c); err != nil || !held {
		t.Errorf("a request whose reply was cut off did not arrive: held %v, %v", held, err)
	}
}

func TestLinkHeals(t *testing.T) {
	end := monotonic.Now().Add(50 * time.Millisecond)
	s, _ := sessionWith(t, &link{cuts: true}, cut{monotonic.Span{From: monotonic.Now(), To: end}, requests})
	if _, err := s.Renew(t.Context()); err != nil {
		t.Error(err)
	}
	if monotonic.Now() < end {
		t.Error("a request got through a cut")
	}
}

// A truthful link hands Valid on as it is; one that lies counts it from the reply and takes no
// grace off.
func TestLinkLies(t *testing.T) {
	slowly := cut{monotonic.Span{From: monotonic.Now(), To: monotonic.Now().Add(time.Hour)}, slow}
	honest, _ := sessionWith(t, &link{cuts: true, grace: 100 * time.Millisecond}, slowly)
	liar, _ := sessionWith(t, &link{cuts: true, grace: 100 * time.Millisecond, lie: true}, slowly)
	if honest.Valid() != time.Second {
		t.Errorf("an honest link says that a session is valid for %v, want 1s", honest.Valid())
	}
	if liar.Valid() < 1100*time.Millisecond {
		t.Errorf("a liar says that a session is valid for %v, want 1.1s at least", liar.Valid())
	}
	r, err := honest.Renew(t.Context())
	if err != nil || r.Valid != time.Second {
		t.Errorf("an honest link renews for %v, %v, want 1s", r.Valid, err)
	}
	before := monotonic.Now()
	r, err = liar.Renew(t.Context())
	took := monotonic.Now().Sub(before)
	if err != nil || r.Valid < 1100*time.Millisecond || r.Valid > 1100*time.Millisecond+took {
		t.Errorf("a liar renews for %v, %v, want 1.1s and the %v that it took", r.Valid, err, took)
	}
}

// A lease's own session is whole until the grant, and is then cut for as long as there are faults.
func TestLinkCutsFromTheGrant(t *testing.T) {
	l := &link{cuts: true, alone: true, seed: 1}
	s, w := sessionWith(t, l)
	if w.cuts.Load() != nil {
		t.Fatal("the wire has a timetable before there is a lease")
	}
	g, err := s.Acquire(t.Context(), mutex("a"))
	if err != nil || !g.Held {
		t.Fatal(g, err)
	}
	cuts := w.cuts.Load()
	if cuts == nil || len(*cuts) < 2 {
		t.Fatalf("the wire has the timetable %v after the grant", cuts)
	}
	first := (*cuts)[1]
	if d := first.To.Sub(first.From); first.kind == slow || d < l.ttl/2 || d > 3*l.ttl {
		t.Errorf("the first cut is %v for %v, want half to three times the TTL", first.kind, d)
	}
}

func TestLinkStrikes(t *testing.T) {
	l := &link{cuts: true}
	_, w := sessionWith(t, l)
	l.cutSoon()
	if w.cuts.Load() == nil {
		t.Error("a struck wire stays whole")
	}
}

func TestLinkRelaysNotices(t *testing.T) {
	l := &link{}
	s, w := sessionWith(t, l)
	c := mutex("a")
	if g, err := s.Acquire(t.Context(), c); err != nil || !g.Held {
		t.Fatal(g, err)
	}
	inspector := l.Driver.(driver.Inspector)
	line, err := inspector.Line(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := inspector.Break(t.Context(), "a", driver.PublicID(c.ID), line.Claims[0].Fence, true); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.(driver.Nudger).Nudge():
	case <-time.After(10 * time.Second):
		t.Error("the nudge about a broken claim does not come")
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-w.done:
	case <-time.After(10 * time.Second):
		t.Error("the relays of a closed session go on")
	}
}
