package drivertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

const noInspector = "it is no driver.Inspector"

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
		w.fail("Line(%s): %v", w.trace.name(name), err)
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
	return ask(w.ctx, w.trial, "viewer", func(ctx context.Context) (driver.Line, error) { return look.Line(ctx, name) }, nil)
}

// lookAtAll is one look at all lines under a prefix.
func lookAtAll(w *world, look driver.Inspector, prefix string) ([]driver.Line, error) {
	return ask(w.ctx, w.trial, "viewer", func(ctx context.Context) ([]driver.Line, error) { return look.Lines(ctx, prefix) }, nil)
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
		w.fail("%s of %s is shown as %+v, want %+v", w.trace.claim(c), a.name, got, want)
	}
	// The store's clock is not this one: an hour tells a unit or a zone that is wrong, and no more.
	if off := time.Since(h.Since); !h.Since.IsZero() && (off > time.Hour || off < -time.Hour) {
		w.fail("%s is shown to stand there since %v: that is %v ago", w.trace.claim(c), h.Since, off)
	}
	if w.traits.Expires && !h.Until.IsZero() && h.Until.Before(h.Since) {
		w.fail("%s is shown to end at %v, before it began at %v", w.trace.claim(c), h.Until, h.Since)
	}
}

// shownOf looks at the line of c and insists that c is there.
func shownOf(w *world, look driver.Inspector, c driver.Claim) driver.Holder {
	l := lineOf(w, look, c.Name)
	at := slices.IndexFunc(l.Claims, func(h driver.Holder) bool { return h.PublicID == driver.PublicID(c.ID) })
	if at < 0 {
		w.fail("%s, which stands in line, is not shown", w.trace.claim(c))
	}
	return l.Claims[at]
}
