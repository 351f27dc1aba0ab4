package drivertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

var inspectorLaw = Law{
	Name: "Also_Inspector",
	Says: "An Inspector shows each line as it is: holders and waiters in order under their public ids, with owner, kind, numbers, " +
		"note and token; a name without claims as an empty line; and never a secret ID.",
	try: tryInspector,
}

func tryInspector(w *world) {
	look := viewer(w)
	if look == nil {
		return
	}
	prefix := w.name("look")
	if l := lineOf(w, look, prefix+"-nobody"); len(l.Claims) != 0 {
		w.fail("a line that nobody stands in has %d claims", len(l.Claims))
	}
	a, b, c := w.actor("A"), w.actor("B"), w.actor("C")
	other := c.held(mutex(prefix + "/a"))
	tryQueueShown(w, look, prefix, other, a, b, c)
	for _, k := range w.kinds() {
		if k.mate != nil {
			trySharersShown(w, look, k, a, b, c)
		}
	}
	if g := b.state(mutex(other.Name)); g.Holder != nil { // the claim that is in the way, where the store says so
		w.shows(*g.Holder, c, other, true)
	}
}

// tryQueueShown looks at one line in which one holds and two wait, and at both lines under prefix,
// until that line is empty.
func tryQueueShown(w *world, look driver.Inspector, prefix string, other driver.Claim, a, b, c *actor) {
	line := func(name string) driver.Line { return lineOf(w, look, name) }
	mine := mutex(prefix + "/b")
	mine.Note, mine.Passes = "nightly é \"job\"", 7
	g := a.hold(mine)
	second, third := b.queue(mutex(mine.Name)), c.queue(mutex(mine.Name))

	l := line(mine.Name)
	if len(l.Claims) != 3 {
		w.fail("the line of %s has %d claims, want 3", w.trace.name(mine.Name), len(l.Claims))
	}
	for i, want := range []struct {
		a *actor
		c driver.Claim
	}{{a, mine}, {b, second}, {c, third}} {
		h := l.Claims[i]
		if !w.traits.Ordered && i > 0 {
			continue // waiters stand in any order
		}
		w.shows(h, want.a, want.c, i == 0)
	}
	if h := l.Claims[0]; h.Fence != g.Fence {
		w.fail("the holder's token is shown as %d and is %d", h.Fence, g.Fence)
	}
	lines, err := lookAtAll(w, look, prefix)
	listed := !errors.Is(err, errors.ErrUnsupported)
	if listed && (err != nil || len(lines) != 2 || lines[0].Name != other.Name || lines[1].Name != mine.Name) {
		w.fail("Lines(%s) has %d lines, error %v: want those of /a and /b in this order", w.trace.name(prefix), len(lines), err)
	}
	secrets := []driver.Claim{mine, second, third, other}
	for _, l := range append(lines, l) {
		w.keepsSecrets(l, secrets, []*actor{a, b, c})
	}
	for _, l := range lines {
		shown := line(l.Name)
		w.keepsSecrets(shown, secrets, []*actor{a, b, c})
		if !alike(l, shown) {
			w.fail("Lines shows %s as %+v and Line as %+v", w.trace.name(l.Name), l, shown)
		}
	}
	tryTwinShown(w, look, prefix, a)
	b.release(second)
	a.letGo(mine)
	c.await(third, patience)
	if l := line(mine.Name); len(l.Claims) != 1 || l.Claims[0].PublicID != driver.PublicID(third.ID) || !l.Claims[0].Held {
		w.fail("after the first two left, the line of %s is shown as %+v", w.trace.name(mine.Name), l.Claims)
	}
	c.letGo(third)
	if l := line(mine.Name); len(l.Claims) != 0 {
		w.fail("after all left, the line of %s is shown as %+v", w.trace.name(mine.Name), l.Claims)
	}
	if lines, err := lookAtAll(w, look, prefix); listed && (err != nil || len(lines) != 1 || lines[0].Name != other.Name) {
		w.fail("after all left %s, Lines(%s) has %d lines, error %v: want that of /a alone", w.trace.name(mine.Name), w.trace.name(prefix), len(lines), err)
	}
}

// Another session of the process has its own owner.
func tryTwinShown(w *world, look driver.Inspector, prefix string, a *actor) {
	own := a.p.open("A2", w.long())
	theirs := own.held(mutex(prefix + "/c"))
	if l := lineOf(w, look, theirs.Name); len(l.Claims) != 1 {
		w.fail("the line of %s has %d claims, want 1", w.trace.name(theirs.Name), len(l.Claims))
	} else {
		during("beside another session of its driver", func() { w.shows(l.Claims[0], own, theirs, true) })
	}
	own.close()
}

// Two claims that share are shown, and the one that waits behind them.
func trySharersShown(w *world, look driver.Inspector, k kind, a, b, c *actor) {
	one := a.held(k.own(w.name("look-" + k.String())))
	two, waits := b.held(k.mate(one.Name)), c.queue(k.rival(one.Name))
	l := lineOf(w, look, one.Name)
	if len(l.Claims) != 3 && w.traits.Ordered || len(l.Claims) < 2 {
		w.fail("the line of %s, where two share as %s and one waits, has %d claims, want 3", w.trace.name(one.Name), k, len(l.Claims))
	}
	for i, of := range []struct {
		a *actor
		c driver.Claim
	}{{a, one}, {b, two}, {c, waits}} {
		at := slices.IndexFunc(l.Claims, func(h driver.Holder) bool { return h.PublicID == driver.PublicID(of.c.ID) })
		switch {
		case at >= 0:
			w.shows(l.Claims[at], of.a, of.c, i < 2)
		case i < 2 || w.traits.Ordered:
			w.fail("%s is not shown", w.trace.claim(of.c))
		}
	}
	// A store may say of what kind they are, and no more.
	if h := c.state(waits).Holder; h != nil && (h.Kind != k.Kind || !slices.Contains([]string{"", driver.PublicID(one.ID), driver.PublicID(two.ID)}, h.PublicID)) {
		w.fail("%s %s is said to be in the way of %s: want one of the two that share as %s", h.Kind, h.PublicID, w.trace.claim(waits), k)
	}
	w.keepsSecrets(l, []driver.Claim{one, two, waits}, []*actor{a, b, c})
	a.letGo(one)
	b.letGo(two)
	c.await(waits, patience)
	c.letGo(waits)
}

// keepsSecrets searches what people see for what only owners may know.
func (w *world) keepsSecrets(l driver.Line, claims []driver.Claim, actors []*actor) {
	b, err := json.Marshal(l)
	if err != nil {
		w.fail("a line cannot be written as JSON: %v", err)
	}
	text := string(b) + fmt.Sprintf("%+v", l)
	for _, c := range claims {
		if strings.Contains(text, c.ID) {
			w.fail("the secret ID of %s stands in what everybody sees: %s", w.trace.claim(c), b)
		}
	}
	for _, a := range actors {
		if strings.Contains(text, a.spec.ID) {
			w.fail("the secret ID of the session of %s stands in what everybody sees: %s", a.name, b)
		}
	}
}
