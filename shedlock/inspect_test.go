package shedlock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/storetest"
)

// Holders are shown, ours with its owner and without its secret, others as foreign.
func TestLooks(t *testing.T) {
	both(t, func(t *testing.T, on opening) {
		s := on(t)
		d := opened(t, s)
		a, j, look := storetest.Entered(t, d, time.Minute), java{t, s, `o'neill\`}, d.(driver.Inspector)
		j.by = "pod 4711"
		ours, second := mutex("jobs/b"), mutex("other")
		a.Asks(ours, true)
		a.Asks(second, true)
		if !j.locks("jobs/a", time.Minute) || !j.locks("jobs_", time.Minute) || !j.locks("jobs/past", time.Minute) || !j.unlocks("jobs/past", 0) {
			t.Fatal("ShedLock cannot lock new names")
		}
		mine, foreign := a.Line("jobs/b"), a.Line("jobs/a")
		if o := mine.Owner; mine.PublicID != driver.PublicID(ours.ID) || mine.Foreign || !mine.Held || o.User != "app" || o.Host != "host-1" || o.PID != 7 || o.Name != "it's us" {
			t.Errorf("ours is shown as %+v", mine)
		}
		if !foreign.Foreign || !foreign.Held || foreign.Note != "pod 4711" || foreign.Kind != driver.Mutex {
			t.Errorf("ShedLock's is shown as %+v", foreign)
		}
		for _, h := range []driver.Holder{mine, foreign} {
			if left := h.Until.Sub(h.Since); left.Round(time.Second) != time.Minute { // the clock is read for each of the two
				t.Errorf("%s is shown to last %v, want a minute", h.PublicID, left)
			}
		}
		if l, err := look.Line(t.Context(), "jobs/past"); err != nil || len(l.Claims) != 0 {
			t.Errorf("what was released is shown as %+v, %v", l, err)
		}
		var names []string
		lines, err := look.Lines(t.Context(), "jobs/")
		for _, l := range lines {
			names = append(names, l.Name)
		}
		if got := strings.Join(names, " "); err != nil || got != "jobs/a jobs/b" {
			t.Errorf("lines %q, %v", got, err)
		}
	})
}

// Break frees what it names, and nothing else.
func TestBreak(t *testing.T) {
	both(t, func(t *testing.T, on opening) {
		s := on(t)
		d := opened(t, s)
		a, j, look := storetest.Entered(t, d, time.Minute), java{t, s, "host-1"}, d.(driver.Inspector)
		ours := mutex("ours")
		a.Asks(ours, true)
		if !j.locks("theirs", time.Minute) {
			t.Fatal("ShedLock cannot lock a new name")
		}
		id := map[string]string{"ours": a.Line("ours").PublicID, "theirs": a.Line("theirs").PublicID}
		refused := func(what, name, id string, fence uint64, now bool) {
			t.Helper()
			if err := look.Break(t.Context(), name, id, fence, now); !errors.Is(err, driver.ErrRefused) || errors.Is(err, driver.ErrOnlyNow) == now {
				t.Errorf("%s: %v; want it refused", what, err)
			}
		}
		for name, id := range id {
			refused("without now", name, id, 0, false)
			refused("with a token", name, id, 1, true)
			refused("by another id", name, driver.PublicID("nobody"), 0, true)
			refused("by the secret", name, ours.ID, 0, true)
		}
		refused("under another name", "theirs", id["ours"], 0, true)
		a.Loses()
		if !j.unlocks("theirs", 0) || !j.updates("theirs", time.Minute) {
			t.Fatal("ShedLock does not hold any more")
		}
		refused("the same host, since another time", "theirs", id["theirs"], 0, true)
		for _, name := range []string{"ours", "theirs"} {
			if err := look.Break(t.Context(), name, a.Line(name).PublicID, 0, true); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if s.count(t, "name = '"+name+"' and lock_until <= NOW") != 1 {
				t.Errorf("%s was broken and is not free", name)
			}
		}
		a.Loses(ours)
		if _, err := a.Acquire(t.Context(), ours); !errors.Is(err, driver.ErrGone) {
			t.Errorf("what was broken answers %v, want ErrGone", err)
		}
		a.Leaves(ours, false)
		a.Asks(mutex("theirs"), true)
	})
}
