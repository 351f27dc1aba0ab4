package drivertest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

var shownLaw = Law{
	Name: "Also_Shown",
	Says: "An Inspector shows the whole of a claim, while it waits and while it holds: its note, its passes and its owner, since when " +
		"it stands or holds, of all holders or of none, and that it is marked. It shows all claims of a line, however many there are.",
	try: tryShown,
}

func tryShown(w *world) {
	look := viewer(w)
	if look == nil {
		return
	}
	w.apart(
		func() { w.eachKind(func(w *world, k kind) { tryShownWhole(w, look, k) }) },
		func() { w.eachKind(func(w *world, k kind) { tryShownSince(w, look, k) }) },
		func() { w.eachKind(func(w *world, k kind) { tryShownMark(w, look, k) }) },
		func() { tryShownCrowd(w, look) },
	)
}

// maxNote is the size in bytes that a store must be able to carry for a note.
const maxNote = 256

// fullNote is a note of that size, with what a layout may cut at or escape.
func fullNote() string {
	note := "nightly\n\tjob of \"é\" & <b>: 100%, 'a' \\n 🔒; "
	return note + strings.Repeat("n", maxNote-len(note)-1) + "."
}

// fullOwner has every field, and the size that every store must be able to carry.
func fullOwner(name string) driver.Owner {
	o := driver.Owner{
		Name: name + " \"é\"", Host: "host-" + name, User: "user-" + name, PID: 4711, Program: "/opt/suite",
		Start: time.Date(2001, 2, 3, 4, 5, 6, 789_000_000, time.UTC), Boot: "boot-" + name,
	}
	o.Program += strings.Repeat("p", driver.MaxOwner-len(o.Encode()))
	return o
}

func tryShownWhole(w *world, look driver.Inspector, k kind) {
	a, b := w.process("A").openAs("A", w.long(), fullOwner("A")), w.process("B").openAs("B", w.long(), fullOwner("B"))
	whole := func(a *actor, c driver.Claim) {
		h := shownOf(w, look, c)
		if h.Note != c.Note {
			w.fail("the note of %s has %d bytes, %q, and is shown with %d as %q", w.trace.claim(c), len(c.Note), c.Note, len(h.Note), h.Note)
		}
		if h.Passes != c.Passes {
			w.fail("%s was passed on %d times, and %d are shown", w.trace.claim(c), c.Passes, h.Passes)
		}
		if got, want := string(h.Owner.Encode()), string(a.spec.Owner.Encode()); got != want {
			w.fail("the owner of %s is shown as %s, want %s", w.trace.claim(c), got, want)
		}
	}
	mine, waits := k.own(w.name("shown-"+k.String())), k.rival("")
	mine.Note, mine.Passes = fullNote(), 1000
	waits.Name, waits.Note, waits.Passes = mine.Name, fullNote(), 2000
	a.hold(mine)
	waits = b.queue(waits)
	whole(a, mine)
	whole(b, waits)
	a.letGo(mine)
	b.await(waits, w.atOnce())
	whole(b, waits)
	b.letGo(waits)
}

// Of two claims that wait one is granted: since then it holds, which is not before the other came,
// by the same clock.
func tryShownSince(w *world, look driver.Inspector, k kind) {
	const while = 5 * time.Millisecond // more than a usual clock's tick
	a, b, c := w.unrenewed("A", w.long()), w.unrenewed("B", w.long()), w.unrenewed("C", w.long())
	mine := a.held(k.own(w.name("shown-since-" + k.String())))
	first := shownOf(w, look, mine)
	from := time.Now()
	second := b.queue(k.rival(mine.Name))
	w.sleep(while)
	third := c.queue(k.rival(mine.Name))
	passed := time.Since(from)
	again := shownOf(w, look, mine)
	if moved := again.Since.Sub(first.Since); moved >= passed && !first.Since.IsZero() {
		w.fail("%s, which stands there unchanged, is shown to hold since %v, and then since %v", w.trace.claim(mine), first.Since, again.Since)
	}
	a.letGo(mine)
	w.until(w.atOnce(), func() bool { return b.state(second).Held || c.state(third).Held },
		"neither of the two who waited behind %s holds", w.trace.claim(mine))
	granted, waits := shownOf(w, look, second), shownOf(w, look, third)
	if !granted.Held {
		granted, waits = waits, granted
	}
	if first.Since.IsZero() != granted.Since.IsZero() {
		w.fail("%s, which was held while nobody waited, is shown to hold since %v, and one that was granted after a wait since %v: want the time of both or of neither",
			w.trace.claim(mine), first.Since, granted.Since)
	}
	if !granted.Since.IsZero() && !waits.Since.IsZero() && granted.Since.Before(waits.Since) {
		w.fail("%s was released after %s and %s had come to wait, and one of them is shown to hold since %v, before the other came at %v",
			w.trace.claim(mine), w.trace.claim(second), w.trace.claim(third), granted.Since, waits.Since)
	}
	b.release(second)
	c.release(third)
}

// A claim that is held and marked keeps others out, and is shown as both.
func tryShownMark(w *world, look driver.Inspector, k kind) {
	br := &breaker{w: w, look: look}
	a := w.unrenewed("A", w.long())
	mine := k.own(w.name("shown-mark-" + k.String()))
	g := a.hold(mine)
	err := br.try(mine.Name, driver.PublicID(mine.ID), g.Fence, false)
	if errors.Is(err, errors.ErrUnsupported) {
		w.without("how a broken claim is shown", err.Error())
		return
	}
	if err != nil {
		w.fail("Break of %s, which stands as named, failed: %v", w.trace.claim(mine), err)
	}
	if h := shownOf(w, look, mine); !h.Broken || !h.Held {
		w.fail("%s was marked as broken and still keeps others out, and is shown with held=%v, broken=%v: want both", w.trace.claim(mine), h.Held, h.Broken)
	}
	a.release(mine)
}

func tryShownCrowd(w *world, look driver.Inspector) {
	a, b := w.actor("A"), w.actor("B")
	mine := a.held(mutex(w.name("shown-crowd")))
	ids := []string{driver.PublicID(mine.ID)}
	for range manyAtOnce {
		ids = append(ids, driver.PublicID(b.queue(mutex(mine.Name)).ID))
	}
	var shown []string
	for _, h := range lineOf(w, look, mine.Name).Claims {
		shown = append(shown, h.PublicID)
	}
	if !w.traits.Ordered { // waiters stand in any order
		slices.Sort(ids)
		slices.Sort(shown)
	}
	if !slices.Equal(shown, ids) {
		w.fail("one holds %s and %d wait for it, and its line is shown with %d claims: want them all, in order", w.trace.name(mine.Name), manyAtOnce, len(shown))
	}
	b.close()
	a.letGo(mine)
}
