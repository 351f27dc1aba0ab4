package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/printable"
)

// outputFlag says how much of a table is shown.
type outputFlag struct {
	Output string `short:"o" enum:"narrow,wide" default:"narrow" placeholder:"narrow" help:"narrow: fits a terminal of 80 columns or more, and 80 where there is none, so long names and owners are cut; wide: every column, and nothing cut."`
}

// columns are what people read of a claim, those of a narrow table first. Each is one field for
// awk; only a name and a note may have blanks, and these are the first and the last.
var columns = []struct{ name, means string }{
	{"NAME", "the lock"},
	{"STATE", "holds, waits, or broken: taken away, and not let go yet"},
	{"OWNER", "program/user@host:pid, or what it calls itself for the program;\nforeign is another program that locks the same"},
	{"AGE", "how long it has held or waited"},
	{"TRUST", "how long it stays there unless it renews"},
	{"TOKEN", "the fencing token, " + envFence + "; - where there is none"},
	{"ID", "what interlock break takes, with the token, for this one"},
	{"KIND", "mutex, write, read; 1/3 is one of three permits"},
	{"PASSES", "how often its process has passed the lock on inside itself"},
	{"NOTE", "what it says of itself, as by --note"},
}

const (
	nameColumn  = 0 // indexes of columns
	stateColumn = 1
	ownerColumn = 2
	ageColumn   = 3
	trustColumn = 4
	narrow      = 6 // columns
)

// columnsTitle is what columnsHelp begins with.
const columnsTitle = "Columns"

// columnsHelp explains the columns in help and on the manual's page, where a line that is indented
// stays as it is.
func columnsHelp(which string) string {
	var b strings.Builder
	b.WriteString(columnsTitle + which + ":\n\n")
	for _, c := range columns {
		fmt.Fprintf(&b, "  %-6s  %s\n", c.name, strings.ReplaceAll(c.means, "\n", "\n"+strings.Repeat(" ", 10)))
	}
	return b.String()
}

// header is the first row of a table.
func header() []string {
	var names []string
	for _, c := range columns {
		names = append(names, c.name)
	}
	return names
}

// claimRow returns a claim in all columns.
func claimRow(t terminal, name string, h driver.Holder, now time.Time) []string {
	return []string{
		printable.Text(name), colouredState(t, h), field(h), age(h.Since, now), left(h, now), token(h.Fence),
		printable.Text(h.PublicID), kind(h), strconv.Itoa(h.Passes), printable.Text(h.Note),
	}
}

// printClaims prints the claims of lines, in order, one to a row: all columns where output is wide,
// else the narrow ones, cut to the width of the terminal.
func printClaims(t terminal, lines []driver.Line, output string) {
	now, rows := time.Now(), [][]string{header()}
	for _, l := range lines {
		for _, h := range l.Claims {
			rows = append(rows, claimRow(t, l.Name, h, now))
		}
	}
	if output == "wide" {
		printTable(t.out, rows, 0)
		return
	}
	for i := range rows {
		rows[i] = rows[i][:narrow]
	}
	printTable(t.out, rows, t.width(), nameColumn, ownerColumn)
}

// showLine prints one line for people: where it stands, and all about its claims.
func showLine(t terminal, v *view, l driver.Line) {
	upTo := ""
	if l.Fence > 0 {
		upTo = fmt.Sprintf(", tokens up to %d", l.Fence)
	}
	t.print("%s in %s%s", l.Name, v.store, upTo)
	t.print("key: %s", v.key(l.Name))
	if len(l.Claims) == 0 {
		t.print("nobody holds it and nobody waits")
		return
	}
	rows := [][]string{header()[nameColumn+1:]}
	now := time.Now()
	for _, h := range l.Claims {
		rows = append(rows, claimRow(t, l.Name, h, now)[nameColumn+1:])
	}
	printTable(t.out, rows, 0)
}

// state is what a claim does, as the column STATE says it.
func state(h driver.Holder) string {
	switch {
	case h.Broken:
		return "broken"
	case h.Held:
		return "holds"
	}
	return "waits"
}

// colouredState is the state in the colours of a terminal that has some.
func colouredState(t terminal, h driver.Holder) string {
	s := state(h)
	if !t.colours {
		return s
	}
	return map[string]text.Color{"waits": text.FgYellow, "holds": text.FgGreen, "broken": text.FgRed}[s].Sprint(s)
}

// kind returns the kind of a claim, as the column KIND shows it.
func kind(h driver.Holder) string {
	switch {
	case h.Kind == driver.Permit && h.Limit == 0:
		return fmt.Sprintf("%d/?", h.Weight) // another program's, which keeps that to itself
	case h.Kind == driver.Permit:
		return fmt.Sprintf("%d/%d", h.Weight, h.Limit)
	}
	return h.Kind.String()
}

// token returns a fencing token, or - where there is none.
func token(f uint64) string {
	if f == 0 {
		return "-"
	}
	return strconv.FormatUint(f, 10)
}
