package redlock_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redlock"
)

// away has a master refuse connections until it is back.
func away(t *testing.T, w *wire.Wire) (back func()) {
	t.Helper()
	w.Refuse()
	w.Cut()
	return func() {
		t.Helper()
		if err := w.Accept(); err != nil {
			t.Fatal(err)
		}
	}
}

// holding has a new session hold a name on three masters.
func holding(t *testing.T, name string, args ...string) ([]*servertest.Server, *redlock.Driver, []*wire.Wire, driver.Session, driver.Claim) {
	t.Helper()
	set := startMasters(t, 3, args...)
	d, wires := wired(t, set, endless)
	s, c := session(t, d, endlessTTL), mutex(name, false)
	if g, err := s.Acquire(t.Context(), c); !g.Held || err != nil {
		t.Fatalf("a free name: %+v, %v", g, err)
	}
	everywhere(t, set, name)
	return set, d, wires, s, c
}

// renews insists that a renewal succeeds, and loses nothing.
func renews(t *testing.T, s driver.Session, when string) {
	t.Helper()
	if lost, err := renew(t, s); err != nil || len(lost) > 0 {
		t.Fatalf("%s: lost %v, error %v; want it renewed", when, lost, err)
	}
}

// misses has one of three masters lose a claim, and the session hear of it.
func misses(t *testing.T, s driver.Session, c driver.Claim, one *servertest.Server) {
	t.Helper()
	one.MustDo(t, "DEL", c.Name)
	renews(t, s, "with the other two")
	until(t, 30*time.Second, "missed", func() bool { return redlock.Has(s, c.ID) == 2 }) // they may have been faster
}

// denied insists that a renewal is none, for a reason.
func denied(t *testing.T, s driver.Session, when, reason string) {
	t.Helper()
	if lost, err := renew(t, s); err == nil || len(lost) > 0 || !strings.Contains(err.Error(), reason) {
		t.Errorf("%s: lost %v, error %v; want no renewal, since %q", when, lost, err, reason)
	}
}

// The third master has lost a claim and is taken in again. That is no vote for the renewal in which
// it happens, nor for a later one unless a majority had the claim in that one without it: somebody
// may have held the name while the key was gone.
func TestAMasterThatIsTakenInCountsLater(t *testing.T) {
	t.Parallel()
	set, _, wires, s, c := holding(t, "counts")
	misses(t, s, c, set[2])
	const reason = `1 of 3 masters have renewed "counts", want 2 or more that had it before and vote`
	back := away(t, wires[1])
	denied(t, s, "the renewal that takes the third one in", reason)
	if !ours(t, set[2], c.Name) {
		t.Fatal("a master where the name is free was not taken in")
	}
	denied(t, s, "the next one, after one of which a majority heard nothing", reason)
	back()
	renews(t, s, "with all three")
	away(t, wires[1])
	renews(t, s, "with the one that was taken in, when a majority had the claim in the last renewal")
	if held, err := s.Release(t.Context(), c); !held || err != nil {
		t.Errorf("release: held %v, %v", held, err)
	}
	freeForGood(t, c.Name, set[0], set[2])
}

// A master has lost its memory and waits for its vote. It is taken in, so that nobody else has it
// when it votes, and counts for nothing until then: a vote that it has forgotten may count for
// somebody else.
func TestAMasterThatWaitsIsTakenInAndDoesNotCount(t *testing.T) {
	t.Parallel()
	for memory, args := range memories {
		t.Run(memory, func(t *testing.T) {
			t.Parallel()
			set, d, wires, s, c := holding(t, "waits", args...)
			if err := set[2].Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			until(t, 30*time.Second, "taken in", func() bool {
				_, _ = d.Masters(t.Context()) // nobody asks for a vote, which would show that it has restarted
				renews(t, s, "with the two that vote")
				return ours(t, set[2], c.Name) && record(t, set[2], "run") != "" && record(t, set[2], "until") != "0" && !votes(t, set[2])
			})
			renews(t, s, "with the two that vote, and the third taken in")
			back := away(t, wires[1])
			denied(t, s, "with one that votes and one that waits", "2 of 3 masters answered, and 1 of these refused, want 2 or more that do not")
			back()
			renews(t, s, "with the two that vote again")
			waited(t, d, set[2])
			away(t, wires[1])
			renews(t, s, "with the master that has waited, and was taken in before")
		})
	}
}

// A master was taken in and has restarted since, with its vote and its key in its log. What it had
// not written yet when it went down may have been a vote for somebody else, so it counts when it
// has waited for that.
func TestAMasterThatRestartsAfterItWasTakenInDoesNotCount(t *testing.T) {
	t.Parallel()
	set, _, wires, s, c := holding(t, "restarts", kept...)
	misses(t, s, c, set[2])
	renews(t, s, "with the first two, which takes the third one in")
	until(t, 30*time.Second, "known to be taken in", func() bool { return redlock.Has(s, c.ID) == 3 })
	if err := set[2].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	away(t, wires[1])
	denied(t, s, "with one that has restarted", `1 of 3 masters have renewed "restarts"`)
}

// A key has gone, and nobody has noticed. It is not made anew as if it had been there.
func TestAKeyThatWentUnnoticedIsMissed(t *testing.T) {
	t.Parallel()
	set, _, wires, s, c := holding(t, "unnoticed")
	set[2].MustDo(t, "DEL", c.Name)
	away(t, wires[1])
	denied(t, s, "with a master that has lost it", `1 of 3 masters have renewed "unnoticed"`)
}

// A claim lost so many masters that it can never be renewed: it is lost, although it was taken in
// again where it was gone.
func TestWhatAMajorityLostIsLost(t *testing.T) {
	t.Parallel()
	set, _, _, s, c := holding(t, "lost")
	misses(t, s, c, set[2])
	set[1].MustDo(t, "DEL", c.Name)
	if lost, err := renew(t, s); err != nil || !slices.Equal(lost, []driver.Loss{{ID: c.ID, Err: driver.ErrGone}}) {
		t.Errorf("one of three masters had it all the time, and another one has it again: lost %v, error %v; want it lost", lost, err)
	}
	if _, err := s.Release(t.Context(), c); err != nil {
		t.Errorf("release: %v", err)
	}
	freeForGood(t, c.Name, set...)
}

// What is asked of a master that was taken in goes for it as for the others.
func TestAMasterThatWasTakenInIsLeftAndBroken(t *testing.T) {
	t.Parallel()
	taken := func(t *testing.T, name string) ([]*servertest.Server, *redlock.Driver, driver.Session, driver.Claim) {
		set, d, _, s, c := holding(t, name)
		if err := set[2].Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		until(t, 30*time.Second, "taken in", func() bool {
			renews(t, s, "with the two that vote")
			return ours(t, set[2], name)
		})
		return set, d, s, c
	}
	t.Run("requeue", func(t *testing.T) {
		t.Parallel()
		set, d, s, c := taken(t, "requeue")
		next := mutex(c.Name, true)
		if _, held, err := s.(driver.Requeuer).Requeue(t.Context(), c, next); !held || err != nil {
			t.Fatalf("it was held until then: %v, %v", held, err)
		}
		waited(t, d, set[2])
		within(t, "the next claim", func(ctx context.Context) error {
			_, err := acquire(ctx, s, next)
			return err
		})
		until(t, 30*time.Second, "that of the next claim", func() bool { return !strings.Contains(set[2].MustDo(t, "GET", c.Name), c.ID) })
	})
	t.Run("break", func(t *testing.T) {
		t.Parallel()
		set, d, s, c := taken(t, "break")
		line, err := d.Line(t.Context(), c.Name)
		if err != nil || len(line.Claims) != 1 || !line.Claims[0].Held {
			t.Fatalf("the line: %+v, %v", line, err)
		}
		if err := d.Break(t.Context(), c.Name, line.Claims[0].PublicID, line.Claims[0].Fence, false); err != nil {
			t.Fatal(err)
		}
		if v := set[2].MustDo(t, "GET", c.Name); v[27] != '!' {
			t.Errorf("the master that was taken in shows %q, want it marked", v)
		}
		if lost, err := renew(t, s); err != nil || !slices.Equal(lost, []driver.Loss{{ID: c.ID, Err: driver.ErrBroken}}) {
			t.Errorf("lost %v, error %v; want it broken", lost, err)
		}
	})
	t.Run("break now", func(t *testing.T) {
		t.Parallel()
		set, d, s, c := taken(t, "break now")
		line, err := d.Line(t.Context(), c.Name)
		if err != nil || len(line.Claims) != 1 {
			t.Fatalf("the line: %+v, %v", line, err)
		}
		if err := d.Break(t.Context(), c.Name, line.Claims[0].PublicID, line.Claims[0].Fence, true); err != nil {
			t.Fatal(err)
		}
		_, _ = renew(t, s)
		freeForGood(t, c.Name, set...)
	})
}

// The order to take a master in is held up, and arrives when the claim is long released. It must
// not stand there until its time is over.
func TestATakingInThatIsHeldUpIsTakenBack(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	d, wires := wired(t, set, "?node_timeout=500ms")
	s, c := session(t, d, time.Minute), mutex("held up", false)
	if g, err := s.Acquire(t.Context(), c); !g.Held || err != nil {
		t.Fatalf("a free name: %+v, %v", g, err)
	}
	everywhere(t, set, c.Name)
	set[2].MustDo(t, "DEL", c.Name)
	var sent atomic.Bool
	deliver := wires[2].Hold(func(packet []byte) bool {
		mine := bytes.Contains(packet, []byte("ilq1:"+c.ID+"-"))
		sent.Store(sent.Load() || mine)
		return mine
	})
	until(t, 30*time.Second, "asked to be taken in", func() bool {
		_, _ = renew(t, s)
		return sent.Load()
	})
	before := scripts(t, set[2])
	if held, err := s.Release(t.Context(), c); !held || err != nil {
		t.Fatalf("release: %v, %v", held, err)
	}
	until(t, 30*time.Second, "left by the claim", func() bool { return scripts(t, set[2]) > before })
	if !deliver() {
		t.Fatal("nothing was held up")
	}
	freeForGood(t, c.Name, set...)
}
