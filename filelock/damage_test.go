//go:build linux || darwin

package filelock

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/filelock/internal/layout"
	"github.com/interlock-go/interlock/filelock/internal/machine"
)

// damages are what can become of a file by others' hands.
var damages = map[string]func(path string) error{
	"cut to nothing":  func(path string) error { return os.Truncate(path, 0) },
	"cut short":       func(path string) error { return os.Truncate(path, 7) },
	"zeroed":          func(path string) error { return overwrite(path, make([]byte, layout.PageSize)) },
	"all ones":        func(path string) error { return overwrite(path, []byte(strings.Repeat("\xff", layout.PageSize))) },
	"somebody's text": func(path string) error { return os.WriteFile(path, []byte("a list of things to buy"), 0o600) },
	"a longer text": func(path string) error {
		return os.WriteFile(path, []byte(strings.Repeat("a list of things to buy\n", 1000)), 0o600)
	},
}

func overwrite(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	return errors.Join(err, f.Close())
}

func spoil(t *testing.T, how, path string) {
	t.Helper()
	if err := damages[how](path); err != nil {
		t.Fatal(err)
	}
}

// The file of a session is damaged while it holds and another one waits. Neither process ends of it. The holder is told at its
// next renewal, and the waiter is let in after that.
func TestDamage_OfAHoldersSession(t *testing.T) {
	for how := range damages {
		t.Run(how, func(t *testing.T) {
			dir := storeIn(t)
			d, s := openAt(t, dir, long)
			d2, s2 := openAt(t, dir, long)
			acquire(t, s, mutexOf("n"))
			next := mutexOf("n")
			acquire(t, s2, next)
			spoil(t, how, d.st.SessionPath(s.(*session).key))

			d2.sweep(t.Context(), 0)
			try := mutexOf("n")
			try.Queue = false
			if g, err := s2.Acquire(t.Context(), try); err != nil || g.Held {
				t.Errorf("before the holder was told: held %v, %v", g.Held, err)
			}
			if _, err := d2.Lines(t.Context(), ""); err != nil {
				t.Errorf("lines: %v", err)
			}
			if _, err := s2.Renew(t.Context()); err != nil {
				t.Errorf("the waiter's renewal: %v", err)
			}
			if g, err := s2.(*session).state(next.ID); err != nil || g.Held {
				t.Fatalf("two hold: the waiter was let in before the holder was told, %v", err)
			}
			if _, err := s.Renew(t.Context()); !errors.Is(err, driver.ErrSessionLost) {
				t.Errorf("the holder's renewal: %v, want that the session is lost", err)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if g, err := s2.Wait(within(t, soon), next); err != nil || !g.Held {
				t.Errorf("the waiter, after the holder was told: held %v, %v", g.Held, err)
			}
		})
	}
}

func (s *session) state(id string) (driver.Grant, error) {
	c, _ := s.holdings.claim(id)
	return c.n.state(c)
}

// A damaged session whose process is dead is dead: the name is free, for one who waited before as for one who comes after.
func TestDamage_OfADeadSession(t *testing.T) {
	for how := range damages {
		t.Run(how, func(t *testing.T) {
			dir := storeIn(t)
			d, s := openAt(t, dir, long)
			w := startWorker(t, task{Do: "hold", Dir: dir, Name: "n", TTL: long})
			w.hear(t, "held")
			dead := holderOf(t, d, "n")
			first := mutexOf("n")
			acquire(t, s, first)
			spoil(t, how, d.st.SessionPath(dead))
			w.kill()
			if g, err := s.Wait(within(t, soon), first); err != nil || !g.Held {
				t.Fatalf("who waited: held %v, %v", g.Held, err)
			}
			release(t, s, first)

			w = startWorker(t, task{Do: "hold", Dir: dir, Name: "n", TTL: long})
			w.hear(t, "held")
			spoil(t, how, d.st.SessionPath(holderOf(t, d, "n")))
			w.kill()
			_, late := openAt(t, dir, long)
			try := mutexOf("n")
			try.Queue = false
			if g := acquire(t, late, try); !g.Held {
				t.Error("a try after its death: not held")
			}
		})
	}
}

// The record of a lock that is held is damaged. Nobody can tell from it who holds, and yet two never do: the holder is told
// before the time is over that the line is closed for, and who wants the lock gets it then, with a token that is larger.
func TestDamage_OfARecord(t *testing.T) {
	for how, damage := range damages {
		t.Run(how, func(t *testing.T) { t.Parallel(); recordDamaged(t, damage) })
	}
	t.Run("a byte flipped", func(t *testing.T) {
		t.Parallel()
		recordDamaged(t, func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt([]byte{0xff}, 70)
			return errors.Join(err, f.Close())
		})
	})
}

func recordDamaged(t *testing.T, damage func(path string) error) {
	t.Helper()
	dir := storeIn(t)
	d, s := openAt(t, dir, 2*time.Second)
	_, s2 := openAt(t, dir, long)
	release(t, s2, claimed(t, s2, "other"))
	held := mutexOf("n")
	fence := acquire(t, s, held).Fence
	end, _ := s.(*session).file.Until()
	if err := damage(d.Key("n")); err != nil {
		t.Fatal(err)
	}

	if lines, err := d.Lines(t.Context(), ""); !errors.Is(err, layout.ErrDamaged) || !strings.Contains(err.Error(), d.Key("n")) {
		t.Errorf("listed: %v, %v; want the damaged record named", lines, err)
	}
	try := mutexOf("n")
	try.Queue = false
	if g := acquire(t, s2, try); g.Held {
		t.Fatal("two hold: a try")
	}
	next := mutexOf("n")
	if g := acquire(t, s2, next); g.Held {
		t.Fatal("two hold")
	}
	r, err := s.Renew(t.Context())
	if !slices.Contains(r.Lost, driver.Loss{ID: held.ID, Err: driver.ErrGone}) && !errors.Is(err, driver.ErrSessionLost) { // the latter if this machine was slow
		t.Errorf("the holder's renewal: lost %v, %v; want it told", r.Lost, err)
	}
	g, err := s2.Wait(within(t, soon), next)
	if err != nil || !g.Held || g.Fence < fence+driver.Stride {
		t.Fatalf("the next one: held %v, token %d after %d, %v", g.Held, g.Fence, fence, err)
	}
	if now := machine.BootClock(); now < end {
		t.Errorf("two hold: the next one has it %v before the end of what the holder may believe", time.Duration(end-now))
	}
	release(t, s2, next)
}

// claimed acquires a mutex and returns the claim.
func claimed(t *testing.T, s driver.Session, name string) driver.Claim {
	t.Helper()
	c := mutexOf(name)
	acquire(t, s, c)
	return c
}

// A record that has been begun anew by one who was killed before it was known until when it is closed is finished by the
// next.
func TestDamage_BegunAndNotFinished(t *testing.T) {
	dir := storeIn(t)
	d, _ := openAt(t, dir, soon/4)
	_, s := openAt(t, dir, long)
	k, err := d.names.get("n")
	if err != nil {
		t.Fatal(err)
	}
	defer d.names.put(k)
	o, err := k.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o.line.Closed, o.changed = layout.NotYetKnown, true
	err = k.commit(o)
	k.endTurn()
	if err != nil {
		t.Fatal(err)
	}
	c := mutexOf("n")
	if g := acquire(t, s, c); g.Held {
		t.Error("held, although nobody knows who else does")
	}
	if _, err := hold(within(t, soon), s, c); err != nil {
		t.Error(err)
	}
}

// Without the floor there are no tokens, and no process ends of that.
func TestDamage_OfTheFloor(t *testing.T) {
	for how := range damages {
		t.Run(how, func(t *testing.T) {
			dir := storeIn(t)
			d, s := openAt(t, dir, long)
			c := claimed(t, s, "n")
			spoil(t, how, d.floor.File.Name())
			if how == "cut short" {
				return // what is left of the page is zero
			}
			if g, err := s.Acquire(t.Context(), mutexOf("other")); err == nil || g.Held || !errors.Is(err, layout.ErrDamaged) {
				t.Errorf("a token without a floor: held %v, %v", g.Held, err)
			}
			if _, err := s.Renew(t.Context()); err != nil {
				t.Errorf("a renewal needs no token: %v", err)
			}
			release(t, s, c)
			d.sweep(t.Context(), 0)
			if again, err := New(dir, nil); err == nil || !strings.Contains(err.Error(), "floor") {
				t.Errorf("opened again: %v, %v", again, err)
			}
		})
	}
}

// A disk without room is an answer: which file could not be written, at once; what is held stays, and what needs no room
// goes on.
func TestFullDisk(t *testing.T) {
	w := startWorker(t, task{Do: "full", Dir: storeIn(t), Name: "n", TTL: long})
	w.hear(t, "unable")
	w.hear(t, "able")
}

// Whoever makes a record may be held up before its head is written. Who looks meanwhile sees a line without claims, and no damage.
func TestARecordThatIsBeingMadeIsNotDamaged(t *testing.T) {
	d, _ := openAt(t, storeIn(t), long)
	if err := os.WriteFile(d.Key("m"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	begun := make(chan error, 1)
	go func() {
		machine.Nap(10 * time.Millisecond) // for which it is held up
		head, _, _ := (&layout.Record{}).Encode(nil)
		begun <- os.WriteFile(d.Key("m"), head, 0o600)
	}()
	if l, err := d.Line(t.Context(), "m"); err != nil || len(l.Claims) > 0 {
		t.Errorf("a record that is being made: %v, %v, want a line without claims", l, err)
	}
	if err := <-begun; err != nil {
		t.Fatal(err)
	}
}
