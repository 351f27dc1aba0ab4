package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"github.com/interlock-go/interlock/driver"
)

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" }

// claims prints the claims of lines, in order, one to a row.
func (t terminal) claims(lines []driver.Line) {
	w := table.NewWriter()
	w.SetOutputMirror(t.out)
	w.SetStyle(plain)
	w.AppendHeader(table.Row{"name", "kind", "state", "id", "owner", "note", "since", "trust", "fence", "passes"})
	now := time.Now()
	for _, l := range lines {
		for _, h := range l.Claims {
			w.AppendRow(table.Row{
				printable(l.Name), kind(h), t.state(h), h.PublicID, by(h), printable(h.Note), since(h.Since, now), left(h, now), fence(h.Fence), h.Passes,
			})
		}
	}
	w.Render()
}

// plain is columns and nothing else, so that awk and eyes can read it alike.
var plain = table.Style{
	Name:    "plain",
	Box:     table.BoxStyle{PaddingRight: "  ", MiddleVertical: ""},
	Format:  table.FormatOptions{Header: text.FormatUpper},
	Options: table.Options{},
}

func (t terminal) state(h driver.Holder) string {
	state, colour := "waits", text.FgYellow
	switch {
	case h.Broken:
		state, colour = "broken", text.FgRed
	case h.Held:
		state, colour = "holds", text.FgGreen
	}
	if t.colours {
		return colour.Sprint(state)
	}
	return state
}

func kind(h driver.Holder) string {
	switch {
	case h.Kind == driver.Permit && h.Limit == 0:
		return fmt.Sprintf("%d of ?", h.Weight) // another program's, which keeps that to itself
	case h.Kind == driver.Permit:
		return fmt.Sprintf("%d of %d", h.Weight, h.Limit)
	}
	return h.Kind.String()
}

// by says whose a claim is. Another program's says nothing of its owner.
func by(h driver.Holder) string {
	if h.Foreign {
		return "another program"
	}
	return who(h.Owner)
}

// printable is what somebody wrote into the store, whoever it was, as it may be shown: it ends no row and tells a terminal nothing.
func printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		s = strconv.Quote(s)
		return s[1 : len(s)-1]
	}
	return s
}

// who is an owner in a few words: its own name if it has one, else program, user, host and pid.
func who(o driver.Owner) string { return printable(words(o)) }

func words(o driver.Owner) string {
	machine := fmt.Sprintf("%s@%s:%d", o.User, o.Host, o.PID)
	switch {
	case o == (driver.Owner{}):
		return "unknown"
	case o.Name != "" && o.PID == 0:
		return o.Name
	case o.Name == "" || o.Name == fmt.Sprintf("%s/%s/%d", o.Host, o.Program, o.PID):
		return strings.TrimSpace(o.Program + " " + machine)
	}
	return o.Name + " " + machine
}

func since(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return ago(now.Sub(t))
}

// ago is a duration in two figures' precision.
func ago(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return d.Round(time.Minute).String()
}

func left(h driver.Holder, now time.Time) string {
	if h.Until.IsZero() {
		return "-"
	}
	return ago(h.Until.Sub(now))
}

func fence(f uint64) string {
	if f == 0 {
		return "-"
	}
	return fmt.Sprint(f)
}
