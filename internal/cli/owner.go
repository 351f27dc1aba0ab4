package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/printable"
)

// owner returns an owner as one field, without blanks: program/user@host:pid, as far as that is
// known, with the name that the owner has given itself in the place of the program.
func owner(o driver.Owner) string {
	what, where := o.Program, o.User
	if o.Name != "" && o.Name != fmt.Sprintf("%s/%s/%d", o.Host, o.Program, o.PID) {
		what = o.Name
	}
	if o.Host != "" {
		where = strings.TrimPrefix(where+"@"+o.Host, "@")
	}
	if o.PID != 0 {
		where += ":" + strconv.Itoa(o.PID)
	}
	switch {
	case what == "" && where == "":
		return "unknown"
	case what != "" && where != "":
		what += "/"
	}
	return strings.ReplaceAll(printable.Text(what+where), " ", "_")
}

// field returns the owner of a claim as a field of a table. Another program may say of its owner
// what it likes, in a note, or nothing.
func field(h driver.Holder) string {
	switch {
	case !h.Foreign:
		return owner(h.Owner)
	case h.Owner != (driver.Owner{}):
		return "foreign:" + owner(h.Owner)
	case h.Note != "":
		return "foreign:" + strings.ReplaceAll(printable.Text(h.Note), " ", "_")
	}
	return "foreign"
}

// by returns the owner of a claim and its note, for a sentence.
func by(h driver.Holder) string {
	text := owner(h.Owner)
	switch {
	case h.Foreign && h.Owner == (driver.Owner{}):
		text = "another program"
	case h.Foreign:
		text = "another program, " + text
	}
	if h.Note != "" {
		text += " (" + printable.Text(h.Note) + ")"
	}
	return text
}

// heldBy says who holds.
func heldBy(h *driver.Holder) string {
	if h == nil {
		return "held by another"
	}
	text := "held by " + by(*h)
	if !h.Since.IsZero() {
		text += fmt.Sprintf(" since %s, for %s", h.Since.Local().Format(time.DateTime), short(time.Since(h.Since)))
	}
	return text
}

// age returns the time since t.
func age(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return short(now.Sub(t))
}

// left returns how much of a claim's time is left.
func left(h driver.Holder, now time.Time) string {
	if h.Until.IsZero() {
		return "-"
	}
	return short(h.Until.Sub(now))
}

// short returns a duration in six characters, cut and not rounded: no more time has passed or is
// left than it says.
func short(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = max(d, 0); {
	case d < time.Second:
		return fmt.Sprintf("%dms", d/time.Millisecond)
	case d < 10*time.Second:
		return fmt.Sprintf("%d.%ds", d/time.Second, d%time.Second/(100*time.Millisecond))
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d < 100*day:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	}
	return fmt.Sprintf("%dd", d/day)
}
