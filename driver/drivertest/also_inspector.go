package drivertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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
	line := func(name string) driver.Line { return lineOf(w, look, name) }
	if l := line(prefix + "-nobody"); len(l.Claims) != 0 {
		w.fail("a line that nobody stands in has %d claims", len(l.Claims))
	}
	a, b, c := w.actor("A"), w.actor("B"), w.actor("C")
	mine := mutex(prefix + "/b")
	mine.Note, mine.Passes = "nightly é \"job\"", 7
	g := a.hold(mine)
	second, third := b.queue(mutex(mine.Name)), c.queue(mutex(mine.Name))
	other := c.held(mutex(prefix + "/a"))

	l := line(mine.Name)
	if len(l.Claims) != 3 {
		w.fail("the line of %s has %d claims, want 3", w.story.name(mine.Name), len(l.Claims))
	}
	for i, want := range []struct {
		a *actor
		c driver.Claim
	}{{a, mine}, {b, second}, {c, third}} {
		h := l.Claims[i]
		if !w.traits.Ordered && i > 0 {
			continue // who waits stands in any order
		}
		w.shows(h, want.a, want.c, i == 0)
	}
	if h := l.Claims[0]; h.Fence != g.Fence {
		w.fail("the holder's token is shown as %d and is %d", h.Fence, g.Fence)
	}
	lines, err := lookAtAll(w, look, prefix)
	listed := !errors.Is(err, errors.ErrUnsupported)
	if listed && (err != nil || len(lines) != 2 || lines[0].Name != other.Name || lines[1].Name != mine.Name) {
		w.fail("Lines(%s) has %d lines, error %v: want those of /a and /b in this order", w.story.name(prefix), len(lines), err)
	}
	for _, l := range append(lines, l) {
		w.keepsSecrets(l, []driver.Claim{mine, second, third, other}, []*actor{a, b, c})
	}
	for _, l := range lines {
		shown := line(l.Name)
		w.keepsSecrets(shown, []driver.Claim{mine, second, third, other}, []*actor{a, b, c})
		if !alike(l, shown) {
			w.fail("Lines shows %s as %+v and Line as %+v", w.story.name(l.Name), l, shown)
		}
	}
	// Another session of the process has its own owner.
	own := a.p.open("A2", w.long())
	theirs := own.held(mutex(prefix + "/c"))
	if l := line(theirs.Name); len(l.Claims) != 1 {
		w.fail("the line of %s has %d claims, want 1", w.story.name(theirs.Name), len(l.Claims))
	} else {
		during("beside another session of its driver", func() { w.shows(l.Claims[0], own, theirs, true) })
	}
	own.close()
	b.release(second)
	a.letGo(mine)
	c.await(third, patience)
	if l := line(mine.Name); len(l.Claims) != 1 || l.Claims[0].PublicID != driver.PublicID(third.ID) || !l.Claims[0].Held {
		w.fail("after the first two left, the line of %s is shown as %+v", w.story.name(mine.Name), l.Claims)
	}
	c.letGo(third)
	if l := line(mine.Name); len(l.Claims) != 0 {
		w.fail("after all left, the line of %s is shown as %+v", w.story.name(mine.Name), l.Claims)
	}
	if lines, err := lookAtAll(w, look, prefix); listed && (err != nil || len(lines) != 1 || lines[0].Name != other.Name) {
		w.fail("after all left %s, Lines(%s) has %d lines, error %v: want that of /a alone", w.story.name(mine.Name), w.story.name(prefix), len(lines), err)
	}
	for _, k := range w.kinds() {
		if k.mate == nil {
			continue
		}
		one := a.held(k.own(w.name("look-" + k.String()))) // who shares is shown beside whom
		two, waits := b.held(k.mate(one.Name)), c.queue(k.rival(one.Name))
		l := line(one.Name)
		if len(l.Claims) != 3 && w.traits.Ordered || len(l.Claims) < 2 {
			w.fail("the line of %s, where two share as %s and one waits, has %d claims, want 3", w.story.name(one.Name), k, len(l.Claims))
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
				w.fail("%s is not shown", w.story.claim(of.c))
			}
		}
		// A store may say of what kind they are, and no more.
		if h := c.state(waits).Holder; h != nil && (h.Kind != k.Kind || !slices.Contains([]string{"", driver.PublicID(one.ID), driver.PublicID(two.ID)}, h.PublicID)) {
			w.fail("%s %s is said to be in the way of %s: want one of the two that share as %s", h.Kind, h.PublicID, w.story.claim(waits), k)
		}
		w.keepsSecrets(l, []driver.Claim{one, two, waits}, []*actor{a, b, c})
		a.letGo(one)
		b.letGo(two)
		c.await(waits, patience)
		c.letGo(waits)
	}
	if g := b.state(mutex(other.Name)); g.Holder != nil { // who is in the way, where the store says so
		w.shows(*g.Holder, c, other, true)
	}
}

// viewer looks into the store as people do. It is nil where the driver does not support that.
func viewer(w *world) driver.Inspector {
	look, ok := w.process("viewer").d.(driver.Inspector)
	if !ok {
		w.without("what is shown of a line", noInspector)
		return nil
	}
	if _, err := lookAt(w, look, w.name("look")); errors.Is(err, errors.ErrUnsupported) {
		w.without("what is shown of a line", err.Error())
		return nil
	}
	return look
}

// lineOf looks at the line of name and insists on an answer.
func lineOf(w *world, look driver.Inspector, name string) driver.Line {
	l, err := lookAt(w, look, name)
	if err != nil {
		w.fail("Line(%s): %v", w.story.name(name), err)
	}
	if l.Name != name {
		w.fail("Line(%q) is the line of %q", name, l.Name)
	}
	return l
}

// alike reports whether two looks at a line show the same but for times.
func alike(l, other driver.Line) bool {
	text := func(l driver.Line) string {
		l.Claims = append([]driver.Holder{}, l.Claims...)
		for i := range l.Claims {
			l.Claims[i].Since, l.Claims[i].Until = time.Time{}, time.Time{}
		}
		return fmt.Sprintf("%+v", l)
	}
	return text(l) == text(other)
}

// lookAt is one look at a line.
func lookAt(w *world, look driver.Inspector, name string) (driver.Line, error) {
	return ask(w.ctx, w, "viewer", func(ctx context.Context) (driver.Line, error) { return look.Line(ctx, name) }, nil)
}

// lookAtAll is one look at all lines under a prefix.
func lookAtAll(w *world, look driver.Inspector, prefix string) ([]driver.Line, error) {
	return ask(w.ctx, w, "viewer", func(ctx context.Context) ([]driver.Line, error) { return look.Lines(ctx, prefix) }, nil)
}

// shows compares what is shown of a claim with what it is.
func (w *world) shows(h driver.Holder, a *actor, c driver.Claim, held bool) {
	type shown struct {
		public, owner, host, note string
		kind                      driver.Kind
		weight, limit, passes     int
		held, broken, foreign     bool
	}
	got := shown{h.PublicID, h.Owner.Name, h.Owner.Host, h.Note, h.Kind, h.Weight, h.Limit, h.Passes, h.Held, h.Broken, h.Foreign}
	want := shown{driver.PublicID(c.ID), a.spec.Owner.Name, a.spec.Owner.Host, c.Note, c.Kind, c.Weight, c.Limit, c.Passes, held, false, false}
	if got != want {
		w.fail("%s of %s is shown as %+v, want %+v", w.story.claim(c), a.name, got, want)
	}
	// The store's clock is not this one: an hour tells a unit or a zone that is wrong, and no more.
	if off := time.Since(h.Since); !h.Since.IsZero() && (off > time.Hour || off < -time.Hour) {
		w.fail("%s is shown to stand there since %v: that is %v ago", w.story.claim(c), h.Since, off)
	}
	if w.traits.Expires && !h.Until.IsZero() && h.Until.Before(h.Since) {
		w.fail("%s is shown to end at %v, before it began at %v", w.story.claim(c), h.Until, h.Since)
	}
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
			w.fail("the secret ID of %s stands in what everybody sees: %s", w.story.claim(c), b)
		}
	}
	for _, a := range actors {
		if strings.Contains(text, a.spec.ID) {
			w.fail("the secret ID of the session of %s stands in what everybody sees: %s", a.name, b)
		}
	}
}
